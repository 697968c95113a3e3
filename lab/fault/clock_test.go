package fault_test

import (
	"testing"
	"time"

	"oversell/lab/fault"
)

func TestClockJump(t *testing.T) {
	s := server(t, "redis-1")
	c := client(t, s.Addr())
	ahead := func() time.Duration {
		now, err := c.Time(t.Context()).Result()
		must(t, err)
		return time.Until(now).Round(time.Minute)
	}
	must(t, c.Set(t.Context(), "lease", "holder", time.Minute).Err())
	if n := c.Exists(t.Context(), "lease").Val(); n != 1 || ahead() != 0 {
		t.Fatalf("before the fault: %d keys, %s ahead", n, ahead())
	}
	heal := inject(t, fault.ClockJump(s, 2*time.Minute))
	eventually(t, "the lease does not expire", func() bool { return c.Exists(t.Context(), "lease").Val() == 0 })
	if ahead() != 2*time.Minute {
		t.Errorf("%s ahead", ahead())
	}
	other := client(t, server(t, "redis-2").Addr())
	if now := other.Time(t.Context()).Val(); time.Until(now).Round(time.Minute) != 0 {
		t.Errorf("another Redis has %s", now)
	}
	heal()
	heal()
	if ahead() != 0 {
		t.Errorf("after the heal %s ahead", ahead())
	}
	if _, err := fault.ClockJump(server(t, "mysql"), time.Minute).Inject(t.Context()); err == nil {
		t.Error("no error for MySQL, which has no clock of its own")
	}
}
