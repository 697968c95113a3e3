package zklock

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oversell/stock"
)

// TestSilentServer lets the first connection of a session get no answer, as many of those to a ZooKeeper that is
// about to serve. The session must connect again before it ends, in a third of its time-out. Only the first answer
// has this limit.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer func() { _, _ = here.Close(), there.Close() }()
		const wait = 3 * time.Second
		c := &loginConn{Conn: here, wait: wait}
		read := func(longest time.Duration) (time.Duration, error) {
			began := time.Now()
			if err := c.SetReadDeadline(began.Add(longest)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Read(make([]byte, 1))
			return time.Since(began), err
		}
		for _, longest := range []time.Duration{time.Second, time.Minute} {
			if took, err := read(longest); !errors.Is(err, os.ErrDeadlineExceeded) || took != min(longest, wait) {
				t.Errorf("the first answer, for which the driver waits %v: %v after %v", longest, err, took)
			}
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if took, err := read(time.Minute); !errors.Is(err, os.ErrDeadlineExceeded) || took != time.Minute {
			t.Errorf("a later answer: %v after %v", err, took)
		}
	})

	var listen net.ListenConfig
	silent, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	const timeout = 30 * time.Second // as long as soon waits
	dial := dialFor(timeout, nil)
	first := true
	s, err := OpenWith([]string{server()}, timeout, func(network, address string, connect time.Duration) (net.Conn, error) {
		if first {
			first, address = false, silent.Addr().String()
		}
		return dial(network, address, connect)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	soon(t, "the session connects again", func() bool { return s.Alive().Err() == nil })
}

// breakable is a connection that the server has closed, once broken is set.
type breakable struct {
	net.Conn
	broken *atomic.Bool
}

func (c breakable) Write(b []byte) (int, error) {
	if c.broken.Load() {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return c.Conn.Write(b)
}

// TestUnsent breaks the connection at the write of a request. The server never gets the request, so its outcome is
// known, and it may be repeated.
func TestUnsent(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second
	var broken atomic.Bool
	dial := dialFor(timeout, nil)
	s, err := OpenWith([]string{server()}, timeout, func(network, address string, connect time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, connect)
		return breakable{conn, &broken}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	soon(t, "the session begins", func() bool { return s.Alive().Err() == nil })
	broken.Store(true)
	if _, err := Primitives(s, "").Barrier.Remove(t.Context(), newKey()); !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, errUnknown) {
		t.Errorf("a request that was not sent: %v, want %v", err, stock.ErrUnavailable)
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
