package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oversell/lab/experiment"
)

// TestLibraries puts a list of adapters on trial: the trial goes on after a lock that breaks its
// contract, and ends at a command that is no adapter.
func TestLibraries(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text, err := os.ReadFile(example(t))
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(text), `"SET", self.name, self.token, "NX", "PX"`, `"SET", self.name, self.token, "PX"`, 1)
	list, err := json.Marshal([]map[string]string{
		{"id": "wrong", "command": "python3 wrong.py"}, {"id": "no-adapter", "command": "true"}, {"id": "never", "command": "touch never"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "adapters"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"wrong.py": wrong, "adapters/libraries.json": string(list)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), built(), "libraries")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 2 {
		t.Fatalf("%v, want status 2:\n%s", err, out)
	}
	verdicts, err := os.ReadFile(filepath.Join(folder, "docs/libraries/wrong.json"))
	if err != nil || !strings.Contains(string(verdicts), `-- python3 wrong.py"`) {
		t.Errorf("%v: %s", err, verdicts)
	}
	compressed, err := os.ReadFile(filepath.Join(folder, "docs/libraries/wrong.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if runs, err := experiment.RecordedRuns(compressed); err != nil || len(runs) > 0 {
		t.Errorf("%d runs, %v, of a lock on which no hazard was injected", len(runs), err)
	}
	if _, err := os.Stat(filepath.Join(folder, "never")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the list went on after status 2: %v\n%s", err, out)
	}
}
