package locks_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oversell/locks"
)

var (
	errNoAnswer = errors.New("no answer")
	errRefused  = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

// releases answers the nth release with the nth error, and all further releases with the last one.
type releases struct {
	mu      sync.Mutex
	answers []error
	slow    time.Duration
	began   time.Time
	at      []time.Duration
}

func (r *releases) send(context.Context) error {
	r.mu.Lock()
	n := min(len(r.at), len(r.answers)-1)
	r.at = append(r.at, time.Since(r.began))
	r.mu.Unlock()
	time.Sleep(r.slow)
	return r.answers[n]
}

func (r *releases) sent() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at)
}

// TestReleaseAgain checks that a release without an answer is repeated until the lease ends. From
// the third request on, this happens in the background.
func TestReleaseAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []error
		slow    time.Duration // duration of each answer
		late    time.Duration // time from the grant to the release
		want    error         // the error that the holder gets
		sent    int           // 0 means ten requests or more, all within the lease
	}{
		{"released", []error{nil}, 0, 0, nil, 1},
		{"lost before", []error{locks.ErrNotHeld}, 0, 0, locks.ErrNotHeld, 1},
		{"a broken connection", []error{errNoAnswer, nil}, 0, 0, nil, 2},
		{"released, but the answer was lost", []error{errNoAnswer, locks.ErrNotHeld}, 0, 0, nil, 2},
		{"never sent, and lost before", []error{errRefused, locks.ErrNotHeld}, 0, 0, locks.ErrNotHeld, 2},
		{"a dead connection of the pool, and lost before", []error{driver.ErrBadConn, locks.ErrNotHeld}, 0, 0, locks.ErrNotHeld, 2},
		{"back after a while", []error{errRefused, errRefused, errRefused, errRefused, nil}, 0, 0, errRefused, 5},
		{"slow, and back after a while", []error{errNoAnswer, errNoAnswer, nil}, time.Second, 0, errNoAnswer, 3},
		{"never back", []error{errNoAnswer}, 0, 0, errNoAnswer, 0},
		{"past its lease", []error{errNoAnswer}, 0, 11 * second, locks.ErrNotHeld, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &releases{answers: test.answers, slow: test.slow, began: time.Now()}
				h := locks.NewLock(t.Context(), locks.Grant{
					Key: "stock:1", Asked: time.Now(), Lease: 10 * second, Release: r.send, Again: r.send,
				})
				time.Sleep(test.late)
				after := false
				h.OnRelease(func() { after = true })
				asked := time.Now()
				err := h.Release(t.Context())
				if !errors.Is(err, test.want) || errors.Is(err, locks.ErrNotHeld) != errors.Is(test.want, locks.ErrNotHeld) || !after {
					t.Errorf("released: %v, want %v; the next one here has its turn: %v", err, test.want, after)
				}
				if took := time.Since(asked); took > test.slow {
					t.Errorf("the holder waited for %v", took)
				}
				time.Sleep(11 * second) // the lease has ended, and with it the background work
				sent := r.sent()
				last := sent[len(sent)-1]
				switch n := len(sent); {
				case test.sent > 0 && n != test.sent, test.sent == 0 && n < 10:
					t.Errorf("sent %d times, want %d", n, test.sent)
				case test.sent == 0 && (last > 10*second || last < 9*second):
					t.Errorf("last sent after %v of a lease of 10 s", last)
				}
			})
		})
	}
}

// TestBlindReleaseOnce checks that a release that names no owner is sent once. A repeated release
// could free the lock of the next holder.
func TestBlindReleaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &releases{answers: []error{errNoAnswer}, began: time.Now()}
		h := locks.NewLock(t.Context(), locks.Grant{Key: "stock:1", Asked: time.Now(), Lease: 10 * second, Release: r.send})
		if err := h.Release(t.Context()); !errors.Is(err, errNoAnswer) {
			t.Error(err)
		}
		time.Sleep(11 * second)
		if n := len(r.sent()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestAwaitReleases checks that AwaitReleases waits until each release has an answer, or until its
// context ends.
func TestAwaitReleases(t *testing.T) {
	var back atomic.Bool
	send := func(context.Context) error {
		if back.Load() {
			return nil
		}
		return errRefused
	}
	if err := locks.GiveBack(t.Context(), time.Now().Add(time.Hour), send); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	locks.AwaitReleases(gone)
	back.Store(true)
	locks.AwaitReleases(t.Context())
}
