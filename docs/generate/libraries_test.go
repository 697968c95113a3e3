package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"oversell/lab/experiment"
	"oversell/lab/rig/rigtest"
)

// TestLibraries puts a list of adapters on trial: the trial goes on after a lock that breaks its
// contract, and ends at a command that is no adapter.
func TestLibraries(t *testing.T) {
	program := rigtest.Program(t)
	text := read(t, "../../adapters/examples/lock.py")
	t.Chdir(t.TempDir())
	wrong := strings.Replace(text, `"SET", self.name, self.token, "NX", "PX"`, `"SET", self.name, self.token, "PX"`, 1)
	list, err := json.Marshal([]map[string]string{
		{"id": "wrong", "command": "python3 wrong.py"}, {"id": "no-adapter", "command": "true"}, {"id": "never", "command": "touch never"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("adapters", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"wrong.py": wrong, "adapters/libraries.json": string(list)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = judgeLibraries(t.Context(), program, nil, 1)
	if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 2 {
		t.Fatalf("%v, want status 2", err)
	}
	if verdicts := read(t, "docs/libraries/wrong.json"); !strings.Contains(verdicts, `-- python3 wrong.py"`) {
		t.Error(verdicts)
	}
	if runs, err := experiment.RecordedRuns([]byte(read(t, "docs/libraries/wrong.json.gz"))); err != nil || len(runs) > 0 {
		t.Errorf("%d runs, %v, of a lock on which no hazard was injected", len(runs), err)
	}
	if _, err := os.Stat("never"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the list went on after status 2: %v", err)
	}
}
