package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// buildCommand builds the program oversell at path, by the Makefile's flags, so that both
// share what is compiled already.
func buildCommand(path string) *exec.Cmd {
	cmd := exec.Command("go", "build", "-tags", "nomsgpack", "-trimpath", "-buildvcs=false", "-o", path, "oversell") //nolint:gosec,noctx // constant but for the path; it ends
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

// Build builds the program oversell at path, for tests that run it by themselves. It must
// be called from within the module, as tests are.
func Build(path string) error {
	if out, err := buildCommand(path).CombinedOutput(); err != nil {
		return fmt.Errorf("rig: build: %w\n%s", err, out)
	}
	return nil
}

// build is Build as a process that the reaper knows: a test that is killed leaves no compiler.
func (r *Rig) build(ctx context.Context, path string) error {
	return r.run(ctx, "build oversell", filepath.Join(r.dir, "build.log"), buildCommand(path))
}
