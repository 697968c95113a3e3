package cli_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestStepCommand runs the command step on the strategy none until an update is lost. The
// keystrokes come from a pipe instead of a terminal.
func TestStepCommand(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), built(), "step", "none")
	cmd.Stdin = strings.NewReader("a\nb\nx\naaa\nbbb\na\n r q a")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	screens := strings.Split(string(out), "none: A and B buy one piece each; the stock is 10\n")
	// There is a screen at the start, one for each of eight moves of A or B, and one for the key r.
	if len(screens)-1 != 1+8+1 {
		t.Fatalf("%d screens, want 10:\n%s", len(screens)-1, out)
	}
	for i, want := range map[int]string{
		3:  "> read        has read 10               > read        has read 10\n",
		6:  "    answer: sold, 9 left\n\n  stock in the database: 9\n",
		9:  "  ✗ 2 sold, 9 left of 10: an update was lost.\n",
		10: "> has sent no request yet               > has sent no request yet\n\n  stock in the database: 10\n",
	} {
		if !strings.Contains(screens[i], want) {
			t.Errorf("screen %d lacks %q:\n%s", i, want, screens[i])
		}
	}
	for _, want := range []string{"'x' is not a key", "A has its answer; r starts again"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

// TestStepKeys passes the keys as an argument. The steps show the commands that Redis received.
func TestStepKeys(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), built(), "step", "redis-lua", "--keys", "aaaaaaa").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{" nx", "redis_lua_release.lua", "answer: sold, 9 left"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}
