package cli_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestNumbers checks that a command with an invalid number exits with status 2 and a line of text,
// before it starts a lab.
func TestNumbers(t *testing.T) {
	binary := built()
	for want, args := range map[string]string{
		"break: --seeds 0: must be 1 or more":            "break pause redis --seeds 0",
		"break: --seeds -3: must be 1 or more":           "break --all --seeds -3",
		"step: --pace -1s: must not be negative":         "step none --pace -1s",
		"step: --lease 0s: must be 100ms or more":        "step none --lease 0s",
		"lab: --replicas 0: must be 1 to 50":             "lab --replicas 0",
		"lab: --replicas 51: must be 1 to 50":            "lab --replicas 51",
		"lab: --port 65536: must be 1 to 65535":          "lab --port 65536",
		"lab: --port -1: must be 1 to 65535":             "lab --port -1",
		"run: runs 0: must be 1 or more":                 "run coupon --runs 0",
		`break: --seeds "1.5": must be a whole number`:   "break pause redis --seeds 1.5",
		`lab: --replicas "many": must be a whole number`: "lab --replicas many",
	} {
		var status *exec.ExitError
		out, err := exec.CommandContext(t.Context(), binary, strings.Fields(args)...).CombinedOutput()
		if !errors.As(err, &status) || status.ExitCode() != 2 || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
}
