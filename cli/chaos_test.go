package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestChaosCommand carries out a plan in which none loses an update, and draws its timeline.
func TestChaosCommand(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "chaos.html")
	out, err := exec.CommandContext(t.Context(), built(), "chaos", "none", "--quiet", "--html", page, "--plan", "A sells at read, B sells, A resumes").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"✗ none: broken, conservation", "3 sold, 2 taken from stock", " 2. B begins a sale.", "the hazard race, which breaks none, as its card says. Repeat it:", "none: 1 plan. Findings that contradict the card: 0; others: 1.",
		"oversell chaos none --plan 'A sells at read, B sells, A resumes'",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<svg") || !strings.Contains(string(html), "A sells at read, B sells, A resumes") {
		t.Errorf("the page has no timeline: %v", err)
	}
}

func TestChaosMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "name one or more strategies"},
		{[]string{"rediss"}, `did you mean "redis"?`},
		{[]string{"none", "--fenced"}, "none has no fencing token: leave out --fenced"},
		{[]string{"none", "--labs", "0"}, "--labs 0: must be 1 to 16"},
		{[]string{"none", "--for", "-1m"}, "--for -1m0s: must not be negative"},
		{[]string{"none", "--plan", "A flies"}, `move 1 of the plan, "A flies": there is no verb "flies"`},
	} {
		cmd := exec.CommandContext(t.Context(), built(), append([]string{"chaos"}, test.args...)...)
		out, err := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != 2 || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %v, exit status %d, %s", test.args, err, status, out)
		}
	}
}
