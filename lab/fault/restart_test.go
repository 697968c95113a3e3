package fault_test

import (
	"testing"

	"oversell/lab/fault"
)

func TestRestart(t *testing.T) {
	for _, name := range []string{"mysql", "replica-2"} {
		s := server(t, name)
		pid := s.PID()
		heal := inject(t, fault.Restart(s))
		if alive(pid) || s.PID() == 0 {
			t.Errorf("%s: pid %d before and %d after", name, pid, s.PID())
		}
		heal()
	}
	eventually(t, "the replica does not get ready", func() bool { return status(t, "replica-2", "/readyz") == 200 })
}
