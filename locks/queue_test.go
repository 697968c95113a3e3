package locks_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// single is a locker that grants to one request at a time and never waits. It records the largest
// number of concurrent requests.
type single struct {
	mu       sync.Mutex
	asking   int
	most     int // largest number of concurrent requests
	held     bool
	latency  time.Duration
	err      error // returned instead of a grant, if set
	first    error // returned instead of the first grant, if set
	requests []locks.Request
	cleared  []string
}

func (*single) Card() api.Card { return api.Card{ID: "single"} }

func (s *single) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	s.ask(1, r)
	defer s.ask(-1, r)
	time.Sleep(s.latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.err, s.first); err != nil {
		s.first = nil
		return nil, err
	}
	if s.held || ctx.Err() != nil {
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	s.held = true
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: time.Now(), Release: func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = false
		return nil
	}}), nil
}

func (s *single) ask(n int, r locks.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking += n
	s.most = max(s.most, s.asking)
	if n > 0 {
		s.requests = append(s.requests, r)
	}
}

func (s *single) Clear(_ context.Context, key string) error {
	s.cleared = append(s.cleared, key)
	return nil
}

func request(owner string, wait time.Duration) locks.Request {
	return locks.Request{Key: "stock:1", Owner: owner, Wait: wait}
}

// TestQueueOrder checks that requests reach the backend one at a time, in order of arrival.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &single{latency: time.Millisecond}
		l := locks.Queue(s)
		var served, want []string
		var tasks sync.WaitGroup
		for i := range 20 {
			owner := fmt.Sprint(i)
			want = append(want, owner)
			tasks.Go(func() {
				h, err := l.Acquire(t.Context(), request(owner, time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				served = append(served, owner)
				time.Sleep(second)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the request is in the queue now
		}
		tasks.Wait()
		if !slices.Equal(served, want) {
			t.Errorf("served %v", served)
		}
		if s.most != 1 {
			t.Errorf("%d asked the backend at once", s.most)
		}
		// The time in the queue is subtracted from the wait that the backend receives.
		if got, want := s.requests[3].Wait, time.Minute-3*(second+time.Millisecond); got != want {
			t.Errorf("the fourth had %v left, want %v", got, want)
		}
	})
}

// TestQueueKeys checks that each key has its own queue.
func TestQueueKeys(t *testing.T) {
	var turns locks.FIFOMutex
	for _, key := range []string{"a", "b", "c"} {
		if _, err := turns.Take(t.Context(), key, 0); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := turns.Take(t.Context(), "b", 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a key that is taken: %v", err)
	}
}

// TestTurns checks when FIFOMutex.Take returns, and whether it returns an error.
func TestTurns(t *testing.T) {
	cause := errors.New("hung up")
	for _, test := range []struct {
		name  string
		wait  time.Duration
		free  time.Duration // when the holder releases the mutex
		gone  time.Duration // when the request is cancelled
		after time.Duration
		want  error // nil means that Take returns the mutex
	}{
		{name: "one look, taken", free: time.Hour, gone: time.Hour, want: locks.ErrNotAcquired},
		{name: "one look, free", free: -1, gone: time.Hour},
		{name: "in time", wait: 2 * second, free: second, gone: time.Hour, after: second},
		{name: "too late", wait: second, free: 2 * second, gone: time.Hour, after: second, want: locks.ErrNotAcquired},
		{name: "hung up", wait: 5 * second, free: 9 * second, gone: 3 * second, after: 3 * second, want: cause},
		{name: "hung up before", wait: second, free: -1, gone: -1, want: cause},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var turns locks.FIFOMutex
				leave, err := turns.Take(t.Context(), "key", 0)
				if err != nil {
					t.Fatal(err)
				}
				at(test.free, leave)
				ctx, cancel := context.WithCancelCause(t.Context())
				at(test.gone, func() { cancel(cause) })
				began := time.Now()
				_, err = turns.Take(ctx, "key", test.wait)
				if !errors.Is(err, test.want) || err != nil && !errors.Is(err, locks.ErrNotAcquired) {
					t.Errorf("%v, want %v", err, test.want)
				}
				if got := time.Since(began); got != test.after {
					t.Errorf("after %v, want %v", got, test.after)
				}
			})
		})
	}
}

// at calls do at once if d is negative, and otherwise after d.
func at(d time.Duration, do func()) {
	if d < 0 {
		do()
		return
	}
	time.AfterFunc(d, do)
}

// TestTurnsPassOn checks that a request that leaves the queue in any way does not block others.
func TestTurnsPassOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns locks.FIFOMutex
		leave, _ := turns.Take(t.Context(), "key", 0)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = turns.Take(ctx, "key", time.Hour) }()
		synctest.Wait()
		go func() { _, _ = turns.Take(t.Context(), "key", second) }()
		synctest.Wait()
		last := make(chan error, 1)
		go func() {
			_, err := turns.Take(t.Context(), "key", time.Hour)
			last <- err
		}()
		synctest.Wait()
		cancel()
		time.Sleep(2 * second)
		leave()
		leave() // a second call must not admit two requests
		if err := <-last; err != nil {
			t.Error(err)
		}
		if _, err := turns.Take(t.Context(), "key", 0); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("a second one got in: %v", err)
		}
	})
}

// TestTurnAndTimeOut lets a wait end at the moment when its request gets the mutex. The next
// request must get the mutex. The test is repeated, because select chooses a ready case at random.
func TestTurnAndTimeOut(t *testing.T) {
	taken := 0
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var turns locks.FIFOMutex
			leave, _ := turns.Take(t.Context(), "key", 0)
			time.AfterFunc(second, leave)
			ctx, cancel := context.WithTimeout(t.Context(), second)
			defer cancel()
			if mine, err := turns.Take(ctx, "key", second); err == nil {
				taken++
				mine()
			}
			synctest.Wait() // the holder has released the mutex by now
			if _, err := turns.Take(t.Context(), "key", 0); err != nil {
				t.Fatalf("the turn was lost: %v", err)
			}
		})
	}
	t.Logf("the turn was taken %d times of 200", taken)
}

// TestQueueShares checks that all waiters get the error if the backend is unavailable.
func TestQueueShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &single{latency: second, err: &stock.Unavailable{Backend: "redis", Err: errors.New("refused")}}
		l := locks.Queue(s)
		began, told := time.Now(), atomic.Int32{}
		var tasks sync.WaitGroup
		for i := range 10 {
			tasks.Go(func() {
				if _, err := l.Acquire(t.Context(), request(fmt.Sprint(i), time.Hour)); errors.Is(err, stock.ErrUnavailable) {
					told.Add(1)
				}
			})
		}
		tasks.Wait()
		if time.Since(began) != second || told.Load() != 10 || len(s.requests) != 1 {
			t.Errorf("%d of 10 told after %v, the backend was asked %d times", told.Load(), time.Since(began), len(s.requests))
		}
		// The queue accepts requests again.
		s.err = nil
		if _, err := l.Acquire(t.Context(), request("next", 0)); err != nil {
			t.Error(err)
		}
	})
}

// TestQueueInterrupted checks that a waiter repeats a request whose statement or connection was ended, and that the
// others wait on. Without an end, as with a proxy that has no server, all get the error.
func TestQueueInterrupted(t *testing.T) {
	for _, cause := range []error{&mysql.MySQLError{Number: 1317}, &mysql.MySQLError{Number: 1969}, stock.ErrInterrupted, mysql.ErrInvalidConn, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			s := &single{latency: second, first: &stock.Unavailable{Backend: "mysql", Err: cause}}
			l := locks.Queue(s)
			var tasks sync.WaitGroup
			for i := range 5 {
				tasks.Go(func() {
					h, err := l.Acquire(t.Context(), request(fmt.Sprint(i), time.Hour))
					if err == nil {
						err = h.Release(t.Context())
					}
					if err != nil {
						t.Errorf("after %v: %v", cause, err)
					}
				})
			}
			tasks.Wait()
			if len(s.requests) != 6 {
				t.Errorf("after %v, the backend was asked %d times, want 6", cause, len(s.requests))
			}
			// When the wait is over, the error is that of the wait, and has the cause.
			s.err = &stock.Unavailable{Backend: "mysql", Err: cause}
			if _, err := l.Acquire(t.Context(), request("late", second)); !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, cause) || errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("at the end of the wait: %v", err)
			}
			s.latency = 0
			if _, err := l.Acquire(t.Context(), request("last", time.Hour)); !errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("each attempt is interrupted at once: %v", err)
			}
		})
	}
}

// TestQueues checks that as many waiters as there are queues send requests.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &single{latency: second}
		l := locks.Queues(s, 3)
		var tasks sync.WaitGroup
		for i := range 10 {
			tasks.Go(func() { _, _ = l.Acquire(t.Context(), request(fmt.Sprint(i), time.Hour)) })
		}
		tasks.Wait()
		if s.most != 3 {
			t.Errorf("%d requests at a time, want 3", s.most)
		}
	})
}

// TestQueueFailure checks that the next request is served if the inner locker returns an error.
func TestQueueFailure(t *testing.T) {
	s := &single{held: true}
	l := locks.Queue(s)
	for range 3 {
		if _, err := l.Acquire(t.Context(), request("owner", 0)); !errors.Is(err, locks.ErrNotAcquired) {
			t.Fatal(err)
		}
	}
	if len(s.requests) != 3 {
		t.Errorf("the backend was asked %d times, want 3", len(s.requests))
	}
}

// TestQueueStress runs fifty concurrent tasks, some cancelled, for the race detector.
func TestQueueStress(t *testing.T) {
	l := locks.Queue(&single{})
	var inside, most, served atomic.Int32
	var tasks sync.WaitGroup
	for i := range 50 {
		tasks.Go(func() {
			for round := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((i*round)%7+1)*200*time.Microsecond)
				h, err := l.Acquire(ctx, request(fmt.Sprint(i), time.Duration(round%5)*time.Millisecond))
				if err == nil {
					most.Store(max(most.Load(), inside.Add(1)))
					served.Add(1)
					inside.Add(-1)
					err = h.Release(ctx)
				}
				if err != nil && !errors.Is(err, locks.ErrNotAcquired) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	tasks.Wait()
	if most.Load() != 1 || served.Load() == 0 {
		t.Errorf("%d inside at once, %d served", most.Load(), served.Load())
	}
	if _, err := l.Acquire(t.Context(), request("last", 0)); err != nil {
		t.Errorf("after all that: %v", err)
	}
}
