package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/lab/rig/rigtest"
)

// submission is a program of a student: testdata/grade/lock.py with features and one flaw, or right.
type submission struct {
	exercise, features, flaw string
	// names lists the requirements that may be the first that failed: one of them says what is wrong.
	names []string
}

// wrongLocks returns locks with one mistake each.
func wrongLocks() []submission {
	const base = "lease,lease_per_request"
	const notice, wake, fair = base + ",renewal,loss_notice", base + ",renewal,loss_notice,wake", base + ",renewal,loss_notice,fairness"
	wrong := func(exercise, features, flaw string, names ...string) submission {
		return submission{exercise, features, flaw, names}
	}
	return []submission{
		wrong("1", base, "no-expiry", "crash"),
		wrong("1", base, "setnx-expire", "crash-between"),
		wrong("1", base, "client-clock", "race", "replica-race", "exclusion", "exclusion-across"),
		wrong("1", base, "set-always", "race", "replica-race"),
		wrong("1", base, "get-then-set", "exclusion", "exclusion-across"),
		wrong("1", base, "lock-per-process", "replica-race"),
		wrong("1", base, "one-key", "keys"),
		wrong("1", base, "waits-for-ever", "time-out"),
		wrong("1", base, "gives-up-early", "time-out"),
		wrong("1", base, "blocks-at-0", "time-out"),
		wrong("1", base, "ignores-cancel", "cancellation"),
		wrong("1", base, "cuts-lease", "lease-length"),
		wrong("1", base, "cancel-leaves-lock", "cancellation", "clean-up"),
		wrong("2", base, "deletes-foreign-lock", "foreign-unlock"),
		wrong("2", base, "release-without-effect", "release"),
		wrong("2", base, "process-token", "same-process"),
		wrong("2", base, "says-released", "unnoticed-expiry"),
		wrong("2", base, "deletes-by-pattern", "names"),
		wrong("3", base, "get-then-del", "late-release"),
		wrong("3", base, "process-token", "same-process"),
		wrong("4", base+",reentry", "forgets-count", "re-entry"),
		wrong("4", base+",reentry", "re-enters-once", "re-entry"),
		wrong("4", base+",reentry", "anybody-re-enters", "race"),
		wrong("4", base+",reentry", "waits-for-itself", "re-entry"),
		wrong("5", base+",renewal", "nobody-renews", "renewal"),
		wrong("5", base+",renewal", "renews-after-release", "renewal-end"),
		wrong("5", base+",renewal", "renews-stolen", "renewal-end"),
		wrong("5", base+",renewal", "ignores-no-renew", "lease-length", "same-process", "no-renewal"),
		wrong("6", notice, "loss-unnoticed", "expiry", "no-renewal", "loss-notice"),
		wrong("6", base+",loss_notice", "verify-always-held", "expiry"),
		wrong("6", notice, "lost-for-nothing", "renewal"),
		wrong("6", base+",loss_notice", "renews-foreign-lock", "expiry"),
		wrong("6", base+",loss_notice", "lease-from-answer", "late-answer"),
		wrong("6", base+",loss_notice", "hides-loss-at-release", "expiry", "loss-notice"),
		wrong("7", wake, "polls", "polling"),
		wrong("7", wake, "wakes-all", "herd"),
		wrong("7", wake, "no-wake-up", "release"),
		wrong("7", wake, "forgets-message", "missed-release", "crash"),
		wrong("7", wake, "sleeps-through", "waiter-reset"),
		wrong("8", fair, "unfair", "order"),
		wrong("8", fair, "keeps-the-dead", "dead-waiter"),
		wrong("8", fair, "keeps-the-cancelled", "release", "cancellation"),
		wrong("8", fair, "dead-waiter-unlocks", "dead-waiter"),
		wrong("9", base+",majority", "two-of-five", "exclusion", "exclusion-across", "partition"),
		wrong("9", base+",majority", "first-node-only", "failover"),
		wrong("10", base+",loss_notice,fence", "local-fence", "fence"),
		wrong("10", base+",loss_notice,fence", "constant-fence", "fence"),
		wrong("10", base+",loss_notice,fence", "clear-deletes-fence", "amnesia"),
	}
}

// rightLocks returns locks that pass.
func rightLocks() []submission {
	const base = "lease,lease_per_request"
	const notice = base + ",renewal,loss_notice"
	return []submission{
		{exercise: "1", features: base},
		{exercise: "2", features: base},
		{exercise: "3", features: base},
		{exercise: "4", features: base + ",reentry"},
		{exercise: "5", features: base + ",renewal"},
		{exercise: "6", features: notice},
		{exercise: "7", features: notice + ",wake"},
		{exercise: "8", features: notice + ",fairness"},
		{exercise: "9", features: base + ",majority"},
		{exercise: "10", features: base + ",loss_notice,fence"},
	}
}

// graded is what the grader says about a submission.
type graded struct {
	status    int
	text      string
	score, of int
	failed    []string // the requirements that were checked and are not met, in their order
	hint      string   // a strategy
}

func gradeOf(t *testing.T, exercise string, command ...string) graded {
	t.Helper()
	file := filepath.Join(t.TempDir(), "grade.json")
	var g graded
	g.text, g.status = judge(t, append([]string{"grade", "-q", "--json", file, exercise, "--"}, command...)...)
	text, err := os.ReadFile(file) //nolint:gosec // our own file
	var written struct {
		Score, Of int
		Findings  []struct {
			Requirement  string
			Met, Checked bool
		}
		Hint struct{ Strategy string }
	}
	if err == nil {
		err = json.Unmarshal(text, &written)
	}
	if err != nil {
		t.Fatalf("%v; status %d:\n%s", err, g.status, g.text)
	}
	g.score, g.of, g.hint = written.Score, written.Of, written.Hint.Strategy
	for _, f := range written.Findings {
		if f.Checked && !f.Met {
			g.failed = append(g.failed, f.Requirement)
		}
	}
	return g
}

func (s submission) grade(t *testing.T) graded {
	t.Helper()
	lock, err := filepath.Abs("testdata/grade/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	return gradeOf(t, s.exercise, "python3", lock, s.features, s.flaw)
}

func (s submission) check(t *testing.T) {
	t.Helper()
	g := s.grade(t)
	switch {
	case s.flaw == "" && (g.status != 0 || g.score != g.of || g.of == 0):
		t.Errorf("a right lock has status %d:\n%s", g.status, g.text)
	case s.flaw != "" && (g.status != 1 || len(g.failed) == 0 || !slices.Contains(s.names, g.failed[0]) || g.hint == ""):
		t.Errorf("status %d, failed %v, hint %q, want first one of %v:\n%s", g.status, g.failed, g.hint, s.names, g.text)
	}
	t.Logf("exercise %s, %s: score %d of %d, %v, hint %s", s.exercise, s.flaw, g.score, g.of, g.failed, g.hint)
}

// TestGrade grades a few locks. With OVERSELL_GRADES, it grades all of them.
func TestGrade(t *testing.T) {
	rigtest.Nightly(t, "TestGradeStart of ./cli")
	t.Parallel()
	few := []string{"setnx-expire", "local-fence"}
	for _, s := range wrongLocks() {
		if slices.Contains(few, s.flaw) || os.Getenv("OVERSELL_GRADES") != "" {
			t.Run(s.exercise+"-"+s.flaw, s.check)
		}
	}
	for _, s := range rightLocks() {
		if s.exercise == "6" || os.Getenv("OVERSELL_GRADES") != "" {
			t.Run(s.exercise+"-right", s.check)
		}
	}
}

// TestGradeRepeats grades two submissions twenty times, with OVERSELL_GRADES. The verdict must not change.
func TestGradeRepeats(t *testing.T) {
	t.Parallel()
	if os.Getenv("OVERSELL_GRADES") == "" {
		t.Skip("make grades runs this test")
	}
	for _, s := range []submission{{"3", "lease,lease_per_request", "get-then-del", nil}, rightLocks()[2]} {
		first := s.grade(t)
		for range 19 {
			if g := s.grade(t); g.score != first.score || !slices.Equal(g.failed, first.failed) {
				t.Errorf("%s: score %d, %v, but the first time %d, %v:\n%s", s.flaw, g.score, g.failed, first.score, first.failed, g.text)
			}
		}
	}
}

// TestGradeStart checks that the starting files pass nothing.
func TestGradeStart(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs("../adapters/exercises")
	if err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"python3", filepath.Join(folder, "start.py")}}
	if rigtest.IsNightly() {
		commands = append(commands, []string{startInGo(t, folder)})
	}
	for _, command := range commands {
		g := gradeOf(t, "1", command...)
		if g.status != 1 || g.score != 0 || !strings.Contains(g.text, "acquire is not written yet") || len(g.failed) == 0 {
			t.Errorf("%v: status %d, score %d of %d:\n%s", command, g.status, g.score, g.of, g.text)
		}
	}
}

// startInGo builds the starting file in Go, and returns the path of the program.
func startInGo(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "start")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(folder, "start.go"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestGradeUsage checks the errors that need no lab.
func TestGradeUsage(t *testing.T) {
	t.Parallel()
	hello := func(fields string) string { return `echo '{"hello":1,"library":"x",` + fields + `}'; cat` }
	for want, args := range map[string][]string{
		"the student's command is missing":      {"grade", "3"},
		"name one exercise before --":           {"grade", "--", "true"},
		`did you mean "renewal"?`:               {"grade", "renewa", "--", "true"},
		"exercise 4 needs the capability":       {"grade", "4", "--", hello(`"backends":["redis"],"capabilities":{"lease":true}`)},
		"needs a lock on one of these backends": {"grade", "1", "--", hello(`"backends":["etcd"],"capabilities":{"lease":true}`)},
		"the hello of the program has breaks":   {"grade", "7", "--", hello(`"backends":["redis"],"breaks":[{"hazard":"polling"}]`)},
		"the program has ended":                 {"grade", "1", "--", "true"},
	} {
		if text, status := judge(t, args...); status != 2 || !strings.Contains(text, want) {
			t.Errorf("%q: status %d, %s\nwant 2 and %s", args, status, text, want)
		}
	}
	text, status := judge(t, "grade")
	if status != 0 || strings.Count(text, "\n") != 10 || !strings.Contains(text, "docs/exercises/03-compare-and-delete.md") {
		t.Errorf("the list: status %d\n%s", status, text)
	}
}
