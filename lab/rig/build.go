package rig

import (
	"fmt"
	"os"
	"os/exec"
)

// buildCommand uses the Makefile's flags, so that Build and make share the compiler's cache.
func buildCommand(path string) *exec.Cmd {
	cmd := exec.Command("go", "build", "-tags", "nomsgpack", "-trimpath", "-buildvcs=false", "-o", path, "oversell") //nolint:gosec,noctx // constant but for the path; it ends
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

// Build builds the program oversell at path. It must be called from within the module.
func Build(path string) error {
	if out, err := buildCommand(path).CombinedOutput(); err != nil {
		return fmt.Errorf("rig: build: %w\n%s", err, out)
	}
	return nil
}
