package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oversell/stock"
)

// Queue decorates a Locker. For each key, one waiter of this process sends requests. The others
// wait in order of arrival. So a hundred waiters on three replicas are three in Redis or ZooKeeper.
func Queue(l Locker) Locker { return Queues(l, 1) }

// Queues is Queue with n queues for each key, which requests join in turn. So n waiters of this process send requests,
// for a server that executes many requests together faster than one after the other.
func Queues(l Locker, n uint64) Locker {
	q := &queue{decorated: decorated{l}, n: n, passed: map[string]run{}}
	q.turns.Idle = q.releaseUnclaimed
	return q
}

type queue struct {
	decorated
	n      uint64
	joined atomic.Uint64
	turns  FIFOMutex

	mu     sync.Mutex
	passed map[string]run // locks that were passed on to the next request of a queue
}

func (q *queue) Acquire(ctx context.Context, r Request) (*Lock, error) {
	began := time.Now()
	own := fmt.Sprint(q.joined.Add(1)%q.n, " ", r.Key)
	leave, err := q.turns.Take(ctx, own, r.Wait)
	if err != nil {
		return nil, err
	}
	asked := r.Wait
	r.Wait = max(0, r.Wait-time.Since(began))
	h, err := q.acquire(ctx, own, r)
	if ended, ok := err.(*WaitEnded); ok { //nolint:errorlint // another error in the chain would be lost
		err = &WaitEnded{ended.Key, asked} // the caller knows only the whole wait
	}
	if err != nil {
		leave()
		return nil, err
	}
	h.OnRelease(leave)
	return h, nil
}

// FIFOMutex locks keys within this process, in order of arrival. Its zero value is ready for use.
type FIFOMutex struct {
	// Idle, if set, runs when the mutex of a key is released and no request waits for it.
	Idle func(key string)

	mu sync.Mutex
	// waiting has a list for each locked key, with a channel for each waiting request. The request
	// receives nil on its channel when it gets the mutex, or the error of Fail.
	waiting map[string][]chan error
}

// Take locks the key's mutex. It returns ErrNotAcquired when ctx ends or wait has passed. With
// wait 0 it tries once. leave passes the mutex to the next request; further calls do nothing.
func (t *FIFOMutex) Take(ctx context.Context, key string, wait time.Duration) (leave func(), err error) {
	if ctx.Err() != nil { // a cancelled request must not take a free mutex
		return nil, NotAcquired(ctx, key, wait)
	}
	if turn := t.enter(key); turn != nil {
		select {
		case err = <-turn:
		case <-time.After(wait):
			err = t.quit(ctx, key, turn, wait)
		case <-ctx.Done():
			err = t.quit(ctx, key, turn, wait)
		}
		if err != nil {
			return nil, err
		}
	}
	return sync.OnceFunc(func() { t.next(key) }), nil
}

// Waiting returns the number of requests that wait for the key's mutex.
func (t *FIFOMutex) Waiting(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting[key])
}

// enter locks a free mutex and returns nil. Otherwise it returns the channel of a new waiter.
func (t *FIFOMutex) enter(key string) (turn chan error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[string][]chan error{}
	}
	queue, taken := t.waiting[key]
	if !taken {
		t.waiting[key] = nil
		return nil
	}
	turn = make(chan error, 1)
	t.waiting[key] = append(queue, turn)
	return turn
}

func (t *FIFOMutex) next(key string) {
	t.mu.Lock()
	if queue := t.waiting[key]; len(queue) > 0 {
		t.waiting[key] = queue[1:]
		queue[0] <- nil
		t.mu.Unlock()
		return
	}
	delete(t.waiting, key)
	t.mu.Unlock()
	if t.Idle != nil {
		t.Idle(key)
	}
}

// quit leaves the queue. If the request got the mutex meanwhile, quit passes the mutex on.
func (t *FIFOMutex) quit(ctx context.Context, key string, turn chan error, wait time.Duration) error {
	t.mu.Lock()
	i := slices.Index(t.waiting[key], turn)
	if i >= 0 {
		t.waiting[key] = slices.Delete(t.waiting[key], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 && <-turn == nil {
		t.next(key)
	}
	return NotAcquired(ctx, key, wait)
}

// mostLost is how many attempts in a row may be interrupted at once, as by a proxy without a server.
const mostLost = 5

// AsFirst calls acquire for a request that has the key's mutex. If only its statement or its connection was ended, it
// calls acquire again, within the wait. If the backend is unavailable, all waits for the key end with the error:
// otherwise an outage costs each waiter a time-out.
func (t *FIFOMutex) AsFirst(ctx context.Context, key string, r Request, acquire func(context.Context, Request) (*Lock, error)) (*Lock, error) {
	began, whole := time.Now(), r
	for lost := 1; ; lost++ {
		sent := time.Now()
		h, err := acquire(ctx, r)
		if time.Since(sent) > prompt {
			lost = 0
		}
		cause := stock.Interrupted(err)
		if cause == nil || lost == mostLost {
			if errors.Is(err, stock.ErrUnavailable) {
				t.fail(key, err)
			}
			return h, err
		}
		if err := SleepRetry(ctx, whole, began, shortestPause+Jitter(ctx, 4*shortestPause)); err != nil {
			return nil, fmt.Errorf("%w: %w", err, cause)
		}
		r.Wait = max(0, whole.Wait-time.Since(began))
	}
}

func (t *FIFOMutex) fail(key string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, turn := range t.waiting[key] {
		turn <- err
	}
	if _, taken := t.waiting[key]; taken {
		t.waiting[key] = nil
	}
}
