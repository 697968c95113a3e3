package zklock

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline checks that a read ends after the session time-out, even if the driver sets a later
// deadline. An earlier deadline, or no deadline, stays unchanged.
func TestDeadline(t *testing.T) {
	for _, test := range []struct{ wanted, got time.Duration }{
		{time.Minute, 10 * time.Second}, {5 * time.Second, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			c := deadlineConn{here, 10 * time.Second}
			began := time.Now()
			if err := c.SetReadDeadline(began.Add(test.wanted)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v, want %v", err, os.ErrDeadlineExceeded)
			}
			if took := time.Since(began); took != test.got {
				t.Errorf("gave up after %v, want %v", took, test.got)
			}
		})
	}
	if none := (deadlineConn{longest: time.Second}).bound(time.Time{}); !none.IsZero() {
		t.Errorf("no deadline became %v", none)
	}
}

// TestGrantedTimeout asks for a longer session time-out than the server grants. From the first lock on, holders
// must count with the granted one.
func TestGrantedTimeout(t *testing.T) {
	t.Parallel()
	s := session(t, server(), 5*time.Minute)
	h := acquire(t, ZK(s), request(newKey(), "owner", time.Minute))
	if s.Timeout() != time.Minute { // maxSessionTimeout of the lab's server
		t.Errorf("the session counts with %v", s.Timeout())
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if shorter := session(t, server(), 5*time.Second); shorter.Timeout() != 5*time.Second {
		t.Errorf("a shorter one counts with %v", shorter.Timeout())
	}
}
