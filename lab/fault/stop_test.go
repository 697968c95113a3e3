package fault_test

import (
	"errors"
	"syscall"
	"testing"

	"oversell/lab/fault"
)

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestStop checks that a stopped server keeps its connections and answers none of them. Package rig
// tests the pause, the kill and the restart of each kind of server.
func TestStop(t *testing.T) {
	s := server(t, "redis-2")
	c := client(t, s.Addr())
	if !answers(t, c) {
		t.Fatal("no answer before the fault")
	}
	heal := inject(t, fault.Stop(s))
	if !silent(t, c) {
		t.Error("it answers")
	}
	heal()
	heal()
	if !answers(t, c) {
		t.Error("no answer after the heal")
	}
}

func TestKillOfDeadServer(t *testing.T) {
	s := server(t, "redis-2")
	inject(t, fault.Kill(s))
	if _, err := fault.Kill(s).Inject(t.Context()); err == nil {
		t.Error("killed twice, no error")
	}
}
