package cli_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		"✗ none: broken, conservation", "3 sold, 2 taken from stock", " 2. B begins a sale.", "the hazard race, which breaks none, as its card says. Repeat it:", "Findings that contradict the card: 0; others: 1.",
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

// TestChaosStopped ends campaigns as Ctrl-C does, when a plan has failed, and while one is repeated: what they have found
// counts, is kept, and decides the exit status.
func TestChaosStopped(t *testing.T) {
	t.Parallel()
	lock, err := filepath.Abs("testdata/grade/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args       []string
		mark, want string
		status     int
	}{
		{[]string{"chaos", "none"}, "✗ none, seed", "Findings that contradict the card: 0; others: 1.", 130},
		{[]string{"judge", "--chaos", "--", "python3", lock, "lease,lease_per_request", "lock-per-process"}, "  again: ", "Findings that contradict the card: 1; others: ", 1},
	} {
		t.Run(test.args[0], func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), built(), slices.Insert(test.args, 1, "--for", "10m")...)
			cmd.Dir = t.TempDir()
			progress, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			text, stopped := "", false
			for lines := bufio.NewScanner(progress); lines.Scan(); {
				text += lines.Text() + "\n"
				if !stopped && strings.Contains(lines.Text(), test.mark) {
					stopped = true
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
				}
			}
			_ = cmd.Wait()
			kept, _ := filepath.Glob(filepath.Join(cmd.Dir, "results/chaos/*.html"))
			found := strings.Join(strings.Fields(out.String()), " ")
			if status := cmd.ProcessState.ExitCode(); status != test.status || !strings.Contains(found, test.want) || !strings.Contains(found, "--plan '") || len(kept) == 0 {
				t.Errorf("exit status %d, want %d and %q; kept %v:\n%s\n%s", status, test.status, test.want, kept, out.String(), text)
			}
		})
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
		{[]string{"none", "--plan", "A flies"}, `move 1 of the plan, "A flies": there is no "flies"; what a client does: sells`},
		{[]string{"none", "--plan", "for each n, A holds n"}, "oversell break --plan carries it out"},
	} {
		cmd := exec.CommandContext(t.Context(), built(), append([]string{"chaos"}, test.args...)...)
		out, err := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != 2 || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %v, exit status %d, %s", test.args, err, status, out)
		}
	}
}
