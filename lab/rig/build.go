package rig

import (
	"fmt"
	"os"
	"os/exec"
)

// buildCommand builds the program oversell at path. It has the Makefile's flags, so that both
// share the compiler's cache.
func buildCommand(path string) command {
	return command{
		path: "go",
		args: []string{"build", "-tags", "nomsgpack", "-trimpath", "-buildvcs=false", "-o", path, "oversell"},
		env:  append(os.Environ(), "CGO_ENABLED=0"),
	}
}

// Build builds the program oversell at path, for tests that run it by themselves. It must
// be called from within the module, as tests are.
func Build(path string) error {
	build := buildCommand(path)
	cmd := exec.Command(build.path, build.args...) //nolint:gosec,noctx // constant but for the path; it ends
	cmd.Env = build.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rig: build: %w\n%s", err, out)
	}
	return nil
}
