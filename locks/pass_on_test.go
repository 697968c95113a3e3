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

// passing is a lock that can be passed on. It records what the backend receives.
type passing struct {
	single
	sent    []string
	err     error  // of PassOn
	onPass  func() // called by PassOn
	granted int64
}

func (p *passing) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	p.sent = append(p.sent, "acquire")
	return locks.NewLock(ctx, p.grant(r)), nil
}

func (p *passing) grant(r locks.Request) locks.Grant {
	p.granted++
	return locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: time.Now(), Lease: time.Minute, Fence: p.granted,
		Release: func(context.Context) error {
			p.sent = append(p.sent, "release")
			return nil
		},
		PassOn: func(context.Context) (locks.Grant, error) {
			p.sent = append(p.sent, "pass on")
			if p.onPass != nil {
				p.onPass()
			}
			return p.grant(r), p.err
		},
	}
}

// TestPassOn checks when a process passes a lock on, and when it releases it for other processes.
func TestPassOn(t *testing.T) {
	first := slices.Concat([]string{"acquire"}, slices.Repeat([]string{"pass on"}, 8), []string{"release"})
	for _, test := range []struct {
		name    string
		waiters int
		work    time.Duration
		lease   time.Duration // of the second request
		err     error         // of PassOn
		want    []string
	}{
		{name: "alone", want: []string{"acquire", "release"}},
		{name: "at most 8 after the first", waiters: 10, want: slices.Concat(first, []string{"acquire", "pass on", "release"})},
		{name: "a quarter of 41", waiters: 50, want: slices.Concat(first, []string{"acquire"}, slices.Repeat([]string{"pass on"}, 10), []string{"release"})},
		{name: "not after long work", waiters: 1, work: 30 * time.Millisecond, want: []string{"acquire", "release", "acquire", "release"}},
		{name: "not with another lease", waiters: 1, lease: time.Hour, want: []string{"acquire", "pass on", "release", "acquire", "release"}},
		{name: "not a lost lock", waiters: 1, err: locks.ErrNotHeld, want: []string{"acquire", "pass on", "acquire", "release"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &passing{err: test.err}
				l := locks.Queue(p)
				holder, err := l.Acquire(t.Context(), request("holder", 0))
				if err != nil {
					t.Fatal(err)
				}
				last := holder.Fence()
				var tasks sync.WaitGroup
				for i := range test.waiters {
					r := request(fmt.Sprint(i), time.Minute)
					r.Lease = test.lease
					tasks.Go(func() {
						h, err := l.Acquire(t.Context(), r)
						if err != nil || h.Owner() != r.Owner || h.Fence() <= last {
							t.Errorf("%v of %s after the fence %d, error %v", h, r.Owner, last, err)
							return
						}
						last = h.Fence()
						if err := h.Release(t.Context()); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				time.Sleep(test.work)
				if err := holder.Release(t.Context()); !errors.Is(err, test.err) {
					t.Error(err)
				}
				tasks.Wait()
				if got := p.sent[:min(len(p.sent), len(test.want))]; !slices.Equal(got, test.want) {
					t.Errorf("the backend received %q, want %q", p.sent, test.want)
				}
			})
		})
	}
}

// TestPassOnUnclaimed lets the only waiter give up while the lock is passed on. The lock must be released.
func TestPassOnUnclaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &passing{onPass: func() {
			cancel()
			synctest.Wait()
		}}
		l := locks.Queue(p)
		holder, err := l.Acquire(t.Context(), request("holder", 0))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, err := l.Acquire(ctx, request("fickle", time.Minute)); !errors.Is(err, locks.ErrNotAcquired) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if err := holder.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []string{"acquire", "pass on", "release"}; !slices.Equal(p.sent, want) {
			t.Errorf("the backend received %q, want %q", p.sent, want)
		}
	})
}
