package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// counter is Curator's SharedCount and DistributedAtomicLong (tutorial 4.6.7): a
// node's data is the value, and the node's own version makes a compare-and-set.
type counter struct {
	recipe
	mutex locks.Locker
}

func newCounter(p, mutex recipe) *counter { return &counter{p, side{newNodeQueue(mutex), writing}} }

// casTries is the number of failed compare-and-sets after which Add takes the mutex.
const casTries = 8

// Get reads the counter. One that was never set has value 0 and version 0.
func (c *counter) Get(ctx context.Context, key string) (locks.Count, error) {
	r := locks.Request{Key: key}
	calls, cancel := c.session.bound(ctx, r, time.Now())
	defer cancel()
	value, err := do(calls, func() (locks.Count, error) {
		data, stat, err := c.session.Get(c.path(key))
		if isNoNode(err) {
			return locks.Count{}, nil
		}
		return countOf(data, stat, err)
	})
	return value, named(ctx, r, err)
}

func countOf(data []byte, stat *zk.Stat, err error) (locks.Count, error) {
	if err != nil {
		return locks.Count{}, err
	}
	value, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return locks.Count{}, fmt.Errorf("the node does not hold a counter: %w", err)
	}
	return locks.Count{Value: value, Version: int64(stat.Version)}, nil
}

// set writes the value where the node has that version; -1 is any version.
func (c *counter) set(ctx context.Context, r locks.Request, value int64, version int64) error {
	for {
		_, err := write(ctx, r, func() (*zk.Stat, error) {
			return c.session.Set(c.path(r.Key), []byte(strconv.FormatInt(value, 10)), int32(version)) //nolint:gosec // the node's own version
		})
		if !isNoNode(err) {
			return named(ctx, r, err)
		}
		// A new node has version 0, as Get says of a missing one.
		if _, err := c.make(ctx, r, []byte("0")); err != nil {
			return named(ctx, r, err)
		}
	}
}

// swap tries one compare-and-set from the value to next of it. again: another client changed
// the value first.
func (c *counter) swap(ctx context.Context, r locks.Request, next func(int64) (int64, bool)) (done locks.Changed, again bool, err error) {
	now, err := c.Get(ctx, r.Key)
	if err != nil {
		return done, false, err
	}
	done.Before, done.After = now.Value, now.Value
	value, ok := next(now.Value)
	if !ok {
		return done, false, nil
	}
	err = c.set(ctx, r, value, now.Version)
	if errors.Is(err, zk.ErrBadVersion) {
		return done, true, nil
	}
	if err == nil {
		done.Succeeded, done.After = true, value
	}
	return done, false, err
}

// Add tries compare-and-set first, like the atomic classes of the JDK. After casTries failures
// it waits for the mutex, under which contention is lower.
func (c *counter) Add(ctx context.Context, r locks.Request, delta int64) (locks.Changed, error) {
	sum := func(v int64) (int64, bool) {
		s := v + delta
		return s, (s > v) == (delta > 0) || delta == 0 // no overflow
	}
	retries := 0
	for ; retries < casTries; retries++ {
		done, again, err := c.swap(ctx, r, sum)
		if done.Retries = retries; !again {
			return done, err
		}
		// At random, or requests that failed together would collide again.
		pause := time.NewTimer(rand.N(time.Millisecond << min(retries, 4))) //nolint:gosec // no secret
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return done, locks.NotAcquired(ctx, r.Key, r.Wait)
		}
	}
	h, err := c.mutex.Acquire(ctx, r)
	if err != nil {
		return locks.Changed{Retries: retries}, err
	}
	defer func() { _ = h.Release(ctx) }()
	for {
		// Requests without the mutex may still change the value first. Soon they wait for it, too.
		done, again, err := c.swap(ctx, r, sum)
		if done.Locked, done.Retries = true, retries; !again {
			return done, err
		}
		retries++
	}
}

// TrySet tries once. Where another client changed the value first, it changes nothing.
func (c *counter) TrySet(ctx context.Context, key string, value int64) (locks.Changed, error) {
	done, _, err := c.swap(ctx, locks.Request{Key: key}, func(int64) (int64, bool) { return value, true })
	return done, err
}

// CompareAndSet tries again after a lost race: the value may still be expect.
func (c *counter) CompareAndSet(ctx context.Context, key string, expect, value int64) (locks.Changed, error) {
	for retries := 0; ; retries++ {
		done, again, err := c.swap(ctx, locks.Request{Key: key}, func(v int64) (int64, bool) { return value, v == expect })
		if done.Retries = retries; !again {
			return done, err
		}
	}
}

// ForceSet overwrites the value. Before is the value that was read just before the write; a
// change between the two is not reported.
func (c *counter) ForceSet(ctx context.Context, key string, value int64) (locks.Changed, error) {
	now, err := c.Get(ctx, key)
	if err != nil {
		return locks.Changed{}, err
	}
	done := locks.Changed{Before: now.Value, After: now.Value}
	if err := c.set(ctx, locks.Request{Key: key}, value, -1); err != nil {
		return done, err
	}
	done.Succeeded, done.After = true, value
	return done, nil
}

// Watch sends changes as a SharedCountListener receives them. It makes the node where it is
// missing, for the watch of a missing node would stay.
func (c *counter) Watch(ctx context.Context, key string) (<-chan locks.Count, error) {
	r := locks.Request{Key: key}
	first, changed, err := c.see(ctx, r)
	if err != nil {
		return nil, named(ctx, r, err)
	}
	news := make(chan locks.Count, 1)
	news <- first
	go func() {
		defer close(news)
		for last := first; c.listen(ctx, changed); {
			var now locks.Count
			if now, changed, err = c.see(ctx, r); err != nil || now == last {
				continue
			}
			last = now
			// There is no other sender: once the old value is taken out, there is room.
			select {
			case <-news:
			default:
			}
			news <- now
		}
	}()
	return news, nil
}

// see reads the counter and watches it. It makes the node where it is missing.
func (c *counter) see(ctx context.Context, r locks.Request) (now locks.Count, changed <-chan zk.Event, err error) {
	calls, cancel := c.session.bound(ctx, r, time.Now())
	defer cancel()
	for {
		seen, err := c.data(calls, c.path(r.Key))
		if isNoNode(err) {
			if _, err = c.make(ctx, r, []byte("0")); err == nil {
				continue
			}
		}
		if err != nil {
			return now, nil, err
		}
		now, err = countOf(seen.data, seen.stat, nil)
		return now, seen.changed, err
	}
}

// listen waits for a change or, where the last read failed, 100 ms; false: ctx or the session
// has ended. The driver takes a watch over to the next connection, and a lost session ends it.
func (c *counter) listen(ctx context.Context, changed <-chan zk.Event) bool {
	var retry <-chan time.Time
	if changed == nil {
		retry = time.After(100 * time.Millisecond)
	}
	select {
	case <-changed:
	case <-retry:
	case <-c.session.closed:
		return false
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}
