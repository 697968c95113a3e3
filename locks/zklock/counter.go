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

// counter is Curator's SharedCount and DistributedAtomicLong (tutorial 4.6.7). The data of a node
// is the counter's value. A compare-and-set compares ZooKeeper's version number of the node.
type counter struct {
	recipe
	mutex locks.Locker
}

func newCounter(p, mutex recipe) *counter {
	return &counter{p, side{&nodeQueue{recipe: mutex}, writing}}
}

// casTries is the number of failed compare-and-sets after which Add takes the mutex.
const casTries = 8

// Get reads the counter. A counter that was never set has value 0 and version 0.
func (c *counter) Get(ctx context.Context, key string) (locks.Count, error) {
	r := locks.Request{Key: key}
	calls, cancel := c.session.bound(ctx, r, time.Now())
	defer cancel()
	value, err := do(calls, c.session, func() (locks.Count, error) {
		data, stat, err := c.session.Get(c.path(key))
		if isNoNode(err) {
			return locks.Count{}, nil
		}
		if err != nil {
			return locks.Count{}, err
		}
		return countOf(data, stat)
	})
	return value, named(ctx, r, err)
}

func countOf(data []byte, stat *zk.Stat) (locks.Count, error) {
	value, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return locks.Count{}, fmt.Errorf("the node does not hold a counter: %w", err)
	}
	return locks.Count{Value: value, Version: int64(stat.Version)}, nil
}

// set writes value if version is the version of the node. Version -1 writes unconditionally.
func (c *counter) set(ctx context.Context, r locks.Request, value int64, version int64) error {
	for {
		_, err := write(ctx, c.session, r, func() (*zk.Stat, error) {
			return c.session.Set(c.path(r.Key), []byte(strconv.FormatInt(value, 10)), int32(version)) //nolint:gosec // the node's own version
		})
		if !isNoNode(err) {
			return named(ctx, r, err)
		}
		// Get returns version 0 for a missing node. make creates it with version 0, so set tries again.
		if _, err := c.make(ctx, r, []byte("0")); err != nil {
			return named(ctx, r, err)
		}
	}
}

// swap tries one compare-and-set to next(value). again means that the value has changed meanwhile.
func (c *counter) swap(ctx context.Context, r locks.Request, next func(int64) (int64, bool)) (done locks.Changed, again bool, err error) {
	now, err := c.Get(ctx, r.Key)
	if err != nil {
		return done, false, err
	}
	value, ok := next(now.Value)
	if !ok {
		return locks.Changed{Before: now.Value, After: now.Value}, false, nil
	}
	return c.replace(ctx, r, now.Value, value, now.Version)
}

// replace is set after a read. again means that the node has another version.
func (c *counter) replace(ctx context.Context, r locks.Request, before, value, version int64) (done locks.Changed, again bool, err error) {
	switch err = c.set(ctx, r, value, version); {
	case err == nil:
		return locks.Changed{Succeeded: true, Before: before, After: value}, false, nil
	case errors.Is(err, zk.ErrBadVersion):
		again, err = true, nil
	}
	return locks.Changed{Before: before, After: before}, again, err
}

// swaps repeats swap while again is true. retries is the number of swaps that failed before.
func (c *counter) swaps(ctx context.Context, r locks.Request, retries int, next func(int64) (int64, bool)) (locks.Changed, error) {
	for {
		done, again, err := c.swap(ctx, r, next)
		if done.Retries = retries; !again {
			return done, err
		}
		retries++
	}
}

// Add tries compare-and-set first, like the atomic classes of the JDK. After casTries failures, Add
// waits for the mutex, under which contention is lower.
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
		// The pause is random, so that requests that failed together do not collide again.
		if locks.Work(ctx, rand.N(time.Millisecond<<min(retries, 4))) != nil { //nolint:gosec // no secret
			return done, locks.NotAcquired(ctx, r.Key, r.Wait)
		}
	}
	h, err := c.mutex.Acquire(ctx, r)
	if err != nil {
		return locks.Changed{Retries: retries}, err
	}
	defer func() { _ = h.Release(ctx) }()
	// Requests that do not hold the mutex may still change the value between a read and a write of
	// this Add. Each of them tries at most casTries times.
	done, err := c.swaps(ctx, r, retries, sum)
	done.Locked = true
	return done, err
}

// TrySet tries one compare-and-set. It fails if another client changes the value at the same time.
func (c *counter) TrySet(ctx context.Context, key string, value int64) (locks.Changed, error) {
	done, _, err := c.swap(ctx, locks.Request{Key: key}, func(int64) (int64, bool) { return value, true })
	return done, err
}

// CompareAndSet sets value if the counter is expect. If another client changes the counter between
// the read and the write, CompareAndSet compares again.
func (c *counter) CompareAndSet(ctx context.Context, key string, expect, value int64) (locks.Changed, error) {
	return c.swaps(ctx, locks.Request{Key: key}, 0, func(v int64) (int64, bool) { return value, v == expect })
}

// CompareVersion sets value if version is the version of the node. ZooKeeper compares it in the write,
// so no loop is needed. Before is the value that was read before the write.
func (c *counter) CompareVersion(ctx context.Context, key string, version, value int64) (locks.Changed, error) {
	now, err := c.Get(ctx, key)
	if err != nil || now.Version != version {
		return locks.Changed{Before: now.Value, After: now.Value}, err
	}
	done, _, err := c.replace(ctx, locks.Request{Key: key}, now.Value, value, version)
	return done, err
}

// ForceSet overwrites the value without a comparison. The result's field Before is the value that
// was read before the write. ForceSet does not detect a change between this read and its write.
func (c *counter) ForceSet(ctx context.Context, key string, value int64) (locks.Changed, error) {
	now, err := c.Get(ctx, key)
	if err != nil {
		return locks.Changed{}, err
	}
	done, _, err := c.replace(ctx, locks.Request{Key: key}, now.Value, value, -1)
	return done, err
}

// Watch is like Curator's SharedCountListener. A new value replaces one that was not received.
// Watch creates a missing node, because a watch on a missing node could not be removed.
func (c *counter) Watch(ctx context.Context, key string) (<-chan locks.Count, error) {
	r := locks.Request{Key: key}
	first, changed, err := c.getAndWatch(ctx, r)
	if err != nil {
		return nil, named(ctx, r, err)
	}
	news := make(chan locks.Count, 1)
	news <- first
	go func() {
		defer close(news)
		for last := first; c.awaitChange(ctx, changed); {
			var now locks.Count
			if now, changed, err = c.getAndWatch(ctx, r); err != nil || now == last {
				continue
			}
			last = now
			// This goroutine is the only sender. So the channel has room after the old value was taken out.
			select {
			case <-news:
			default:
			}
			news <- now
		}
	}()
	return news, nil
}

func (c *counter) getAndWatch(ctx context.Context, r locks.Request) (now locks.Count, changed <-chan zk.Event, err error) {
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
		now, err = countOf(seen.data, seen.stat)
		return now, seen.changed, err
	}
}

// awaitChange waits for a change, or 100 ms if the last read failed. It returns false if ctx or the
// session has ended. The driver restores a watch on the next connection of a session.
func (c *counter) awaitChange(ctx context.Context, changed <-chan zk.Event) bool {
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
