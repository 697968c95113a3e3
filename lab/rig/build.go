package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// buildArgs build the program oversell at a path. The tag drops a format that gin knows
// and nobody speaks, and half of the program's size with it.
func buildArgs(path string) []string {
	return []string{"build", "-tags", "nomsgpack", "-o", path, "oversell"}
}

// Build builds the program oversell at path, for tests that run it by themselves. It must
// be called from within the module, as tests are.
func Build(ctx context.Context, path string) error {
	out, err := exec.CommandContext(ctx, "go", buildArgs(path)...).CombinedOutput() //nolint:gosec // constant but for the path
	if err != nil {
		return fmt.Errorf("rig: build: %w\n%s", err, out)
	}
	return nil
}

// build is Build under the eyes of the reaper: a test that is killed leaves no compiler.
func (r *Rig) build(ctx context.Context, path string) error {
	return r.run(ctx, "build oversell", filepath.Join(r.dir, "build.log"), exec.Command("go", buildArgs(path)...)) //nolint:gosec,noctx // constant but for the path; ended by run
}
