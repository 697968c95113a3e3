package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oversell/locks"
)

// dynasty is a locker whose holders leave the lock to their heirs.
type dynasty struct {
	left func(owner, when string) // told of each who is left the lock; nil: nobody is

	mu     sync.Mutex
	holder string   // at most one
	asked  []string // who had to ask for it
	bad    []string
}

func (*dynasty) Card() locks.Card { return locks.Card{ID: "dynasty"} }

func (d *dynasty) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	for began := time.Now(); !d.ask(r.Owner); {
		if err := locks.SleepRetry(ctx, r, began, second/10); err != nil {
			return nil, err
		}
	}
	return locks.NewLock(ctx, d.grant(r)), nil
}

func (d *dynasty) ask(owner string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, owner)
	if d.holder != "" {
		return false
	}
	d.holder = owner
	return true
}

func (d *dynasty) grant(r locks.Request) locks.Grant {
	return locks.Grant{Key: r.Key, Owner: r.Owner, Asked: time.Now(), Release: func(context.Context) error {
		if heir := r.Heir(); heir != nil {
			d.tell(heir.Request.Owner, "while the backend is asked")
			d.change(r.Owner, heir.Request.Owner)
			if heir.Inherit(d.grant(heir.Request)) {
				d.tell(heir.Request.Owner, "as it inherits")
				return nil
			}
			d.change(heir.Request.Owner, "")
			return nil
		}
		d.change(r.Owner, "")
		return nil
	}}
}

func (d *dynasty) tell(owner, when string) {
	if d.left != nil {
		d.left(owner, when)
	}
}

func (d *dynasty) change(from, to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holder != from {
		d.bad = append(d.bad, from+" gave away what "+d.holder+" held")
	}
	d.holder = to
}

func (d *dynasty) want(t *testing.T, asked ...string) {
	t.Helper()
	if !slices.Equal(d.asked, asked) || d.holder != "" || d.bad != nil {
		t.Errorf("asked %v, want %v; held by %q; %v", d.asked, asked, d.holder, d.bad)
	}
}

// TestHeirs: the lock goes from one to the next in the line, and only the first one asks.
func TestHeirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dynasty{}
		l := locks.Queue(d)
		a := acquired(t, l, "a")
		b, c := behind(t, l, "b"), behind(t, l, "c")
		released(t, a)
		released(t, <-b)
		released(t, <-c)
		d.want(t, "a")
	})
}

// TestHeirHangsUp: whoever goes away while the lock is left to it, leaves no lock behind,
// and those who wait behind it get their turns. It may have noticed by then, or not yet.
func TestHeirHangsUp(t *testing.T) {
	for _, when := range []string{"while the backend is asked", "as it inherits"} {
		for _, noticed := range []time.Duration{0, second} {
			t.Run(fmt.Sprint(when, noticed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for range 100 { // who is faster, is up to the scheduler
						hangUp(t, when, noticed)
					}
				})
			})
		}
	}
}

func hangUp(t *testing.T, moment string, noticed time.Duration) {
	t.Helper()
	d := &dynasty{}
	l := locks.Queue(d)
	holder := acquired(t, l, "holder")
	ctx, hangUp := context.WithCancel(t.Context())
	d.left = func(owner, when string) {
		if owner == "fickle" && when == moment {
			hangUp()
			time.Sleep(noticed)
		}
	}
	go func() {
		h, err := l.Acquire(ctx, request("fickle", time.Minute))
		if err == nil {
			released(t, h)
		} else if !errors.Is(err, locks.ErrNotAcquired) {
			t.Error(err)
		}
	}()
	synctest.Wait()
	next, third := behind(t, l, "next"), behind(t, l, "third")
	released(t, holder)
	for _, waiter := range []<-chan *locks.Lock{next, third} {
		h := <-waiter
		if h == nil {
			t.Fatal("nobody follows")
		}
		released(t, h)
	}
	synctest.Wait()
	if d.holder != "" || d.bad != nil {
		t.Errorf("held by %q; %v", d.holder, d.bad)
	}
}
