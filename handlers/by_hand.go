package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
)

// The routes /test/lock and /test/unlock lock and unlock by hand (tutorial 3.6.3, 3.9.1, 4.5): two
// requests, in place of two lines of code. An owner is one client, and its locks are in the memory of
// one replica. So nginx sends all requests of an owner to one replica.
const (
	longestWait = 2 * time.Minute // nginx waits for 150 s
	// longestHold limits the time of a lock whose owner never unlocks it.
	longestHold = 10 * time.Minute
	maxKept     = 1000
	// defaultKeep is the lease of a primitive that a request keeps, unless the request has another.
	defaultKeep = 10 * time.Second
)

// keptID names the locks of one owner. route is the strategy, or the route of a primitive.
type keptID struct{ route, name, owner string }

// kept has the locks of an owner that no request holds: they stay until an unlock, or until their end.
type kept struct {
	locks []*locks.Lock // one for each acquisition, the newest last
	since time.Time
	ended string // why the lock ended without an unlock; empty while it is held
	onEnd func()
}

type keptLocks struct {
	turns locks.FIFOMutex // an owner acquires one lock at a time
	mu    sync.Mutex
	all   map[keptID]*kept
	names map[string]bool // a name may leave data in a backend for ever, so their number is limited
}

type handAnswer struct {
	primitiveAnswer
	Strategy string `json:"strategy"`
	Owner    string `json:"owner"`
	// Count is how many times the owner must still unlock. At 0 the lock is free.
	Count   int     `json:"count"`
	Fence   int64   `json:"fence,omitempty"`
	LeaseMS float64 `json:"lease_ms,omitempty"` // the lock ends after this time, without an unlock
	HeldMS  float64 `json:"held_ms,omitempty"`
	Warning string  `json:"warning,omitempty"`
}

func handRoutes() []primitiveRoute {
	return []primitiveRoute{
		{path: "lock", read: (*primitiveCall).lock, parameters: []string{"owner", "wait", "lease"}},
		{path: "unlock", read: (*primitiveCall).unlock, parameters: []string{"owner"}},
	}
}

func (c *primitiveCall) id() keptID {
	return keptID{cmp.Or(c.card.ID, c.path), c.request.Key, c.request.Owner}
}

// readHolder reads the strategy and the owner.
func (c *primitiveCall) readHolder() {
	_, c.locker = choice(c.params, "strategy", "redis", c.service.ByHand)
	c.request.Owner = c.word("owner", "")
	if !c.gin.Request.URL.Query().Has("owner") {
		c.fail("owner", c.request.Owner, api.Text{EN: "in the query, as nginx selects the replica by it", ZH: "写在查询参数里，因为 nginx 按它选择副本"})
	}
	if c.err == nil {
		c.card = c.locker.Card()
		c.Backend = c.card.Family
	}
}

func (c *primitiveCall) byHand(outcome api.Outcome, count int) handAnswer {
	return handAnswer{primitiveAnswer: c.done(outcome), Strategy: c.card.ID, Owner: c.request.Owner, Count: count}
}

// lock answers when the lock is granted. With a lease, no watchdog renews the lock.
func (c *primitiveCall) lock() operation {
	c.readHolder()
	r := &c.request
	r.Wait = c.durationTo("wait", primitiveWait, 0, longestWait)
	r.Lease = c.lease()
	if r.NoRenew = r.Lease > 0; r.NoRenew && !c.card.LeasePerRequest {
		c.fail("lease", c.text("lease", ""), api.Textf("left out: %s has no lease per request", "不要给出：%s 没有按请求设置的租期", c.card.ID))
	}
	return func() (any, error) {
		c.trace(c.context(), api.Asked)
		lock, count, err := c.service.kept.acquire(c.context(), c)
		if err != nil {
			return nil, err
		}
		c.granted = time.Now()
		c.trace(c.context(), api.Granted)
		answer := c.byHand(api.Locked, count)
		answer.LeaseMS, answer.Fence = ms(r.Lease), lock.Fence()
		return answer, nil
	}
}

// unlock releases the newest lock of the owner.
func (c *primitiveCall) unlock() operation {
	c.readHolder()
	return func() (any, error) {
		r := c.request
		lock, left, since, ended := c.service.kept.pop(c.id())
		switch {
		case ended != "":
			return nil, refuse(http.StatusGone, api.Expired, "owner %s no longer holds the lock %s: %s", "所有者 %s 已不再持有锁 %s：%s", r.Owner, r.Key, ended)
		case lock == nil:
			return nil, refuse(http.StatusConflict, api.NotHeld,
				"owner %s does not hold the lock %s of %s, so it cannot unlock it: only the owner that locked it can",
				"所有者 %s 没有持有 %[3]s 的锁 %[2]s，不能解锁：只有加锁的所有者才能解锁", r.Owner, r.Key, c.card.ID)
		}
		err := lock.Release(c.context())
		c.trace(c.context(), api.Released)
		if errors.Is(err, locks.ErrNotHeld) {
			return nil, refuse(http.StatusGone, api.Expired, "owner %s no longer holds the lock %s: it expired before this unlock",
				"所有者 %s 已不再持有锁 %s：解锁之前锁已过期", r.Owner, r.Key)
		}
		answer := c.byHand(api.Unlocked, left)
		answer.HeldMS = ms(time.Since(since))
		answer.Warning = locks.ReleaseWarning(err).In(requestLanguage(c.gin))
		return answer, nil
	}
}

func (k *keptLocks) acquire(ctx context.Context, c *primitiveCall) (lock *locks.Lock, count int, err error) {
	began := time.Now()
	leave, err := k.turns.Take(ctx, fmt.Sprint(c.id()), c.request.Wait)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	if err := k.room(c.id()); err != nil {
		return nil, 0, err
	}
	r := c.request
	r.Wait = max(0, r.Wait-time.Since(began))
	lock, err = acquireToKeep(ctx, func(ctx context.Context) (*locks.Lock, error) { return c.locker.Acquire(ctx, r) })
	if err != nil {
		return nil, 0, err
	}
	onEnd := func() { c.trace(context.Background(), api.Released) }
	return lock, k.keep(c.id(), lock, longestHold, c.card.Reentrant, onEnd), nil
}

// acquireToKeep acquires a lock that outlives the request. If the request is cancelled before the
// grant, no lock stays.
func acquireToKeep(ctx context.Context, acquire func(context.Context) (*locks.Lock, error)) (*locks.Lock, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	lock, err := acquire(life)
	if err == nil && !stop() {
		err = errors.Join(locks.NotAcquired(ctx, lock.Key(), 0), lock.Release(ctx))
	}
	if err != nil {
		stop()
		end(nil)
		return nil, err
	}
	lock.OnRelease(func() { end(nil) })
	return lock, nil
}

// room returns locks.ErrFull if too many locks are kept, or too many names were used.
func (k *keptLocks) room(id keptID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) >= maxKept {
		maps.DeleteFunc(k.all, func(_ keptID, e *kept) bool { return e.ended != "" })
	}
	e, crowded := k.all[id], len(k.all) >= maxKept || len(k.names) >= locks.MaxNames && !k.names[id.name]
	if e == nil && crowded || e != nil && len(e.locks) >= maxKept {
		return fmt.Errorf("%w: this replica keeps %d locks, and has used %d names", locks.ErrFull, len(k.all), len(k.names))
	}
	k.names[id.name] = true
	return nil
}

// keep stores a lock, and returns how often the owner holds it. A lock that is not reentrant was
// granted again, so the older grant has expired.
func (k *keptLocks) keep(id keptID, lock *locks.Lock, longest time.Duration, reentrant bool, onEnd func()) (count int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[id]
	if e == nil || e.ended != "" || !reentrant {
		e = &kept{since: time.Now(), onEnd: onEnd}
		k.all[id] = e
		timer := time.AfterFunc(longest, func() { k.end(id, e, lock, fmt.Sprintf("it was held for %v, the longest time", longest)) })
		lock.OnRelease(func() { timer.Stop() })
	}
	e.locks = append(e.locks, lock)
	context.AfterFunc(lock.Context(), func() {
		if lost := context.Cause(lock.Context()); errors.Is(lost, locks.ErrLost) {
			k.end(id, e, lock, lost.Error())
		}
	})
	return len(e.locks)
}

// pop removes and returns the newest lock of an owner, and the number of its other locks.
func (k *keptLocks) pop(id keptID) (lock *locks.Lock, left int, since time.Time, ended string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[id]
	if e == nil {
		return nil, 0, since, ""
	}
	if left = len(e.locks) - 1; e.ended == "" {
		lock, e.locks = e.locks[left], e.locks[:left]
	}
	if left == 0 {
		delete(k.all, id)
	}
	return lock, left, e.since, e.ended
}

func (k *keptLocks) forget(id keptID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, id)
}

// end releases the locks of an owner when the newest of them has ended.
func (k *keptLocks) end(id keptID, e *kept, newest *locks.Lock, why string) {
	k.mu.Lock()
	current := k.all[id] == e && e.ended == "" && e.locks[len(e.locks)-1] == newest
	if !current {
		k.mu.Unlock()
		return
	}
	e.ended = why
	all := e.locks
	e.locks = nil
	k.mu.Unlock()
	releaseNewestFirst(all)
	e.onEnd()
}

func releaseNewestFirst(all []*locks.Lock) {
	for i := len(all) - 1; i >= 0; i-- {
		_ = all[i].Release(context.Background())
	}
}

// ReleaseKept releases the locks that no request holds. A process calls it before it ends.
func (s *Service) ReleaseKept() {
	s.kept.mu.Lock()
	all := s.kept.all
	s.kept.all = map[keptID]*kept{}
	s.kept.mu.Unlock()
	var releasing sync.WaitGroup
	for _, e := range all {
		releasing.Go(func() { releaseNewestFirst(e.locks) })
	}
	releasing.Wait()
}
