package load

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestOpenFiles lowers the limit of this process as a shell does. The children must get the highest limit, and a
// plan with too many clients for the limit must be rejected.
func TestOpenFiles(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 256, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	if err := CheckOpenFiles(200); err == nil || !strings.Contains(err.Error(), "the limit is 256: raise it with ulimit -n") {
		t.Errorf("200 clients with 256 open files: %v", err)
	}
	RaiseOpenFiles()
	if err := CheckOpenFiles(200); err != nil {
		t.Error(err)
	}
	high := syscall.Rlimit{Cur: was.Max, Max: was.Max}
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &high)
	RaiseOpenFiles()
	var now syscall.Rlimit
	if _ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); now.Cur < was.Max {
		t.Errorf("it lowered the limit from %d to %d", was.Max, now.Cur)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -n").Output()
	if err != nil || len(strings.TrimSpace(string(out))) < 4 || strings.TrimSpace(string(out)) == "1024" {
		t.Errorf("a child may open %s files, %v", out, err)
	}
}
