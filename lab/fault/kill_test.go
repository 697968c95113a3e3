package fault_test

import (
	"testing"

	"oversell/lab/fault"
)

func TestKill(t *testing.T) {
	for _, name := range []string{"redis-2", "zookeeper", "replica-1"} {
		s := server(t, name)
		pid := s.PID()
		heal := inject(t, fault.Kill(s))
		if s.PID() != 0 || alive(pid) {
			t.Errorf("%s is alive", name)
		}
		heal()
		if s.PID() == 0 || s.PID() == pid {
			t.Errorf("%s is not back", name)
		}
		heal()
	}
	if got := status(t, "replica-1", "/readyz"); got != 200 {
		t.Errorf("the replica is back, but /readyz answers %d", got)
	}
}
