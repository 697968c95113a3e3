package experiment

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oversell/api"
)

// TestWords checks that each hazard has its words in both languages, and a place in the matrix.
func TestWords(t *testing.T) {
	t.Parallel()
	seen := map[api.Hazard]bool{}
	for _, e := range All() {
		if e.Title.EN == "" || e.Title.ZH == "" || e.Shows.EN == "" || e.Shows.ZH == "" {
			t.Errorf("%s lacks a title, or what it shows, in English or Chinese", e.Hazard)
		}
		if !slices.Contains(Groups(), e.Group) {
			t.Errorf("%s is in no group of the matrix: %q", e.Hazard, e.Group)
		}
		if e.Applies == nil {
			t.Errorf("%s does not say to which strategies it applies", e.Hazard)
		}
		if seen[e.Hazard] {
			t.Errorf("%s is listed twice", e.Hazard)
		}
		seen[e.Hazard] = true
	}
}

// TestAll checks that All lists the hazard of each file.
func TestAll(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`Hazard(?::|, e\.\w+, e\.\w+ =| =) "([a-z-]+)"`)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range literal.FindAllSubmatch(text, -1) {
			found++
			if hazard := api.Hazard(match[1]); !slices.Contains(Hazards(), hazard) {
				t.Errorf("%s has the hazard %s, which nobody can choose: add its line to All in experiment.go", file, hazard)
			}
		}
	}
	if found < len(Hazards())/2 {
		t.Errorf("found only %d of %d hazards in the files", found, len(Hazards()))
	}
}
