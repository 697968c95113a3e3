package rig

import (
	"os"
	"os/exec"
)

// BuildCommand builds the program oversell at path, and must run within the module. It uses the
// Makefile's flags, so that a rig and make share the compiler's cache.
func BuildCommand(path string) *exec.Cmd {
	cmd := exec.Command("go", "build", "-tags", "nomsgpack", "-trimpath", "-buildvcs=false", "-o", path, "oversell") //nolint:gosec,noctx // constant but for the path; it ends
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}
