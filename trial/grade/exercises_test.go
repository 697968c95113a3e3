package grade_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/trial/grade"
	"oversell/trial/lockstest"
)

// TestPages checks that each exercise has a page in both languages, with its title, its new
// requirements and the capabilities that it needs.
func TestPages(t *testing.T) {
	t.Parallel()
	listed := regexp.MustCompile("(?s)(?:New requirements: |新的要求：)(.*?)[.。]")
	for _, e := range grade.Exercises() {
		var want []string
		for _, r := range e.New {
			want = append(want, "`"+r.Name()+"`")
		}
		for folder, title := range map[string]string{"": e.Title.EN, "zh/": e.Title.ZH} {
			file := "../../docs/exercises/" + folder + e.Page() + ".md"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			page := string(text)
			list := listed.FindStringSubmatch(page)
			if list == nil {
				t.Fatalf("%s has no list of requirements", file)
			}
			got := regexp.MustCompile("`[^`]+`").FindAllString(strings.ReplaceAll(list[1], "\n", " "), -1)
			if !slices.Equal(got, want) {
				t.Errorf("%s lists %v, want %v", file, got, want)
			}
			for _, needed := range append([]string{title, fmt.Sprintf("grade %d --", e.Number)}, e.Needs...) {
				if !strings.Contains(page, needed) {
					t.Errorf("%s does not have %q", file, needed)
				}
			}
		}
	}
}

// TestRequirements checks that no requirement is listed twice, that each is either a check or a hazard, and that
// each failure leads to a hint.
func TestRequirements(t *testing.T) {
	t.Parallel()
	for i, e := range grade.Exercises() {
		if found, err := grade.Find(e.Name); err != nil || found.Number != i+1 || e.Number != i+1 {
			t.Errorf("exercise %d: %v, %v", i+1, found.Number, err)
		}
		seen := map[string]bool{}
		for _, r := range e.Requirements() {
			name := r.Name()
			if seen[name] {
				t.Errorf("exercise %d has %s twice", e.Number, name)
			}
			seen[name] = true
			isCheck := slices.ContainsFunc(lockstest.Checks(), func(c lockstest.Check) bool { return c.Name == name })
			_, isHazard := experiment.Of(api.Hazard(strings.TrimSuffix(name, " --fenced")))
			if isCheck == isHazard || isCheck != (r.Check != "") {
				t.Errorf("exercise %d: is %s a check, %v, or a hazard, %v?", e.Number, name, isCheck, isHazard)
			}
			g := grade.Of(e, []grade.Finding{{Requirement: name, Checked: true}, {Requirement: "other", Met: true, Checked: true}})
			if g.Hint == nil || g.Score != 1 || g.Of != 2 || g.Passed() {
				t.Fatalf("%s: %+v", name, g)
			}
			if _, err := os.Stat("../../docs/course/" + g.Hint.Lesson); err != nil || g.Hint.Text.EN == "" || g.Hint.Text.ZH == "" {
				t.Errorf("%s: %+v, %v", name, *g.Hint, err)
			}
		}
	}
	if _, err := grade.Find("renewa"); err == nil || !strings.Contains(err.Error(), "renewal") {
		t.Errorf("an unknown exercise: %v", err)
	}
}
