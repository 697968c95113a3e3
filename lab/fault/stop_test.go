package fault_test

import (
	"errors"
	"syscall"
	"testing"

	"oversell/lab/fault"
)

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStop(t *testing.T) {
	for _, name := range []string{"mysql", "redis-2", "zookeeper", "replica-1"} {
		s := server(t, name)
		pid := s.PID()
		heal := inject(t, fault.Stop(s))
		if s.PID() != pid || !alive(pid) {
			t.Errorf("%s is dead, not stopped", name)
		}
		heal()
		heal()
	}
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
	if !answers(t, c) {
		t.Error("no answer after the heal")
	}
	if status(t, "replica-1", "/healthz") != 200 {
		t.Error("the replica does not go on")
	}
}

func TestStopOfDeadServer(t *testing.T) {
	s := server(t, "redis-2")
	inject(t, fault.Kill(s))
	if _, err := fault.Stop(s).Inject(t.Context()); err == nil {
		t.Error("no error")
	}
	if _, err := fault.Kill(s).Inject(t.Context()); err == nil {
		t.Error("killed twice, no error")
	}
}
