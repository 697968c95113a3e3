package course_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/docs"
	"oversell/lab/course"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

var testLab *rig.Rig

func TestMain(m *testing.M) {
	cfg := rig.FullLab("", "class")
	rigtest.MainWith(m, rigtest.Guest(cfg), func(r *rig.Rig) { testLab = r })
}

// TestSections runs the command of each section with a small load. The test of the page plays the
// lessons, so the commands of lessons are left out here. Each hazard takes a lab, so only the crash
// runs. The tests of lab/experiment run the others, and TestCourseNames checks their commands. Outside of
// make nightly, only the requests and one load run.
func TestSections(t *testing.T) {
	addrs := testLab.Addresses()
	runner := course.Runner{
		Program: testLab.Config().Binary, Target: addrs.Target, Replicas: addrs.Replicas, Token: addrs.Token, Lang: "en",
		Quick: true, Output: io.Discard, Progress: io.Discard,
	}
	client := api.Client{Base: addrs.Target, Token: addrs.Token, HTTP: http.DefaultClient}
	loads := 0
	programs, requests := sectionCommands(t)
	for _, c := range together(programs) {
		if c.Args[0] == "break" && c.Args[1] != "crash" || c.Args[0] == "redis-cli" { // redis-cli needs the student's lab
			continue
		}
		if c.Args[0] != "strategies" && !rigtest.IsNightly() {
			if loads++; loads > 1 {
				continue
			}
		}
		t.Run(c.Text, func(t *testing.T) { runSection(t.Context(), t, runner, client, c) })
	}
	if err := client.Call(t.Context(), http.MethodPut, "/stock/1?count=5000", nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, row := range requests { // at the same time, because most of them only wait
		t.Run(row[0].Text, func(t *testing.T) {
			t.Parallel()
			checkAnswers(t, run(t.Context(), t, runner, row...))
		})
	}
}

// sectionCommands returns each command of the table once, without those of lessons. The requests of a row
// stay together, because some wait for others.
func sectionCommands(t *testing.T) (programs []course.Command, requests [][]course.Command) {
	t.Helper()
	sections, err := sectionsOf(docs.Course, "en")
	if err != nil {
		t.Fatal(err)
	}
	lessons, err := course.Lessons(docs.Course, "en")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, l := range lessons {
		for _, question := range l.Questions() {
			for _, c := range question.Commands {
				seen[c.Text] = true
			}
		}
	}
	for _, s := range sections {
		var row []course.Command
		for _, c := range s.Commands {
			switch {
			case c.Args == nil:
				row = append(row, c)
			case !seen[c.Text]:
				seen[c.Text] = true
				programs = append(programs, c)
			}
		}
		if len(row) > 0 && !seen[row[0].Text] {
			seen[row[0].Text] = true
			requests = append(requests, row)
		}
	}
	return programs, requests
}

// together makes one command of all `break` commands with the same hazard. break runs all its
// strategies at the same time, in one lab.
func together(commands []course.Command) (all []course.Command) {
	of := map[string]int{} // the index of a command, by its hazard and flags
	for _, c := range commands {
		if len(c.Args) < 3 || c.Args[0] != "break" {
			all = append(all, c)
			continue
		}
		kind := c.Args[1] + strings.Join(slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return !strings.HasPrefix(arg, "--") }), " ")
		i, known := of[kind]
		if !known {
			of[kind] = len(all)
			all = append(all, c)
			continue
		}
		for _, arg := range c.Args[2:] {
			if !slices.Contains(all[i].Args, arg) {
				all[i].Args = append(all[i].Args, arg)
			}
		}
	}
	return all
}

func runSection(ctx context.Context, t *testing.T, runner course.Runner, client api.Client, command course.Command) {
	if err := client.Call(ctx, http.MethodPut, "/stock/1?count=5000", nil, nil); err != nil {
		t.Fatal(err)
	}
	run(ctx, t, runner, command)
}

func run(ctx context.Context, t *testing.T, runner course.Runner, commands ...course.Command) *course.Results {
	t.Helper()
	results, err := runner.Run(ctx, commands)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// checkAnswers allows only the refusals of a lock, which some sections are about.
func checkAnswers(t *testing.T, results *course.Results) {
	t.Helper()
	for _, answer := range results.Answers() {
		status, _ := answer["status"].(float64)
		outcome, _ := answer["outcome"].(string)
		if status != http.StatusOK && !slices.Contains([]string{"not_acquired", "expired"}, outcome) {
			t.Errorf("status %v: %v", status, answer)
		}
	}
}
