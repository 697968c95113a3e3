package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the program oversell for tests that start replicas, in a folder of its
// own, and returns its path and a function that removes it. `oversell lab` does not need
// it: there the program runs already. It must be called from within the module, as tests are.
func Build(ctx context.Context) (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "oversell-build-*")
	if err != nil {
		return "", nil, fmt.Errorf("rig: build: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	binary = filepath.Join(dir, "oversell")
	out, err := exec.CommandContext(ctx, "go", "build", "-tags", "nomsgpack", "-o", binary, "oversell").CombinedOutput() //nolint:gosec // constant but for the folder
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("rig: build: %w\n%s", err, out)
	}
	return binary, remove, nil
}
