package cli_test

import (
	"errors"
	"os/exec"
	"testing"

	"oversell/lab/rig/rigtest"
)

// TestAloneKeepsTheStatus checks that `oversell alone` returns the exit status of its command.
func TestAloneKeepsTheStatus(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), rigtest.Program(t), "alone", "--", "sh", "-c", "echo measured; exit 7").Output()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 7 || string(out) != "measured\n" {
		t.Errorf("alone printed %q and ended with %v, want the command's output and status 7", out, err)
	}
}
