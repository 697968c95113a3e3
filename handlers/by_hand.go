package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
)

// The routes /test/lock and /test/unlock, /test/read/lock and /test/read/unlock, … lock and unlock by hand
// (tutorial 3.6.3, 3.9.1, 3.9.5, 3.9.6, 4.5): two requests, in place of two lines of code. An owner is one
// client, and its locks are in the memory of one replica. So nginx sends all requests of an owner to one replica.
const (
	longestWait = 2 * time.Minute // nginx waits for 150 s
	// longestHold limits the time of a lock whose owner never unlocks it.
	longestHold = 10 * time.Minute
	maxKept     = 1000
)

// keptID names the locks of one owner. of is the strategy, or the backend and the route of a primitive.
type keptID struct{ of, name, owner string }

// kept has the locks of an owner that no request holds: they stay until an unlock, or until their end.
type kept struct {
	locks []*locks.Lock // one for each acquisition, the newest last
	since time.Time
	ended string // why the last lock ended without an unlock; empty while one is held
}

type keptLocks struct {
	turns locks.FIFOMutex // an owner acquires one lock at a time
	mu    sync.Mutex
	all   map[keptID]*kept
	names map[string]bool // a name may leave data in a backend for ever, so their number is limited
}

type handAnswer struct {
	primitiveAnswer
	Strategy string   `json:"strategy,omitempty"`
	Also     []string `json:"also,omitempty"`
	Owner    string   `json:"owner"`
	// Count is how many times the owner must still unlock. At 0 the lock is free.
	Count   int     `json:"count"`
	Fence   int64   `json:"fence,omitempty"`
	LeaseMS float64 `json:"lease_ms,omitempty"` // the lock ends after this time, without an unlock
	HeldMS  float64 `json:"held_ms,omitempty"`
	Warning string  `json:"warning,omitempty"`
}

func handRoutes() []primitiveRoute {
	return []primitiveRoute{
		{path: "lock", read: (*primitiveCall).lock, parameters: []string{"also", "owner", "wait", "lease"}},
		{path: "unlock", read: (*primitiveCall).unlock, parameters: []string{"owner"}},
	}
}

// releases reports whether requests to this path release what an earlier request has acquired.
func releases(route string) bool {
	return strings.HasSuffix(route, "unlock") || strings.HasSuffix(route, "/release")
}

func (c *primitiveCall) id() keptID {
	return keptID{cmp.Or(c.card.ID, c.Backend+" "+path.Dir(c.path)), c.request.Key, c.request.Owner}
}

// readStrategy reads the strategy and the owner of its lock.
func (c *primitiveCall) readStrategy() {
	_, c.locker = choice(c.params, "strategy", "redis", c.service.ByHand)
	if c.readOwner(); c.err == nil {
		c.card = c.locker.Card()
		c.Backend = c.card.Family
	}
}

func (c *primitiveCall) readOwner() {
	c.request.Owner = c.word("owner", "")
	if !c.gin.Request.URL.Query().Has("owner") {
		c.fail("owner", c.request.Owner, api.Text{EN: "in the query, as nginx selects the replica by it", ZH: "写在查询参数里，因为 nginx 按它选择副本"})
	}
}

func (c *primitiveCall) byHand(outcome api.Outcome, count int) handAnswer {
	return handAnswer{primitiveAnswer: c.done(outcome), Strategy: c.card.ID, Owner: c.request.Owner, Count: count}
}

// lock acquires the lock of a strategy.
func (c *primitiveCall) lock() operation {
	if c.readStrategy(); c.err == nil {
		c.service.checkOptions(c.params, c.card)
	}
	c.request.Also, c.request.Lease = c.words("also", maxAlso), c.lease()
	return c.lockToKeep(func(ctx context.Context, r locks.Request) (*locks.Lock, error) { return c.locker.Acquire(ctx, r) })
}

// lockFrom returns the function that acquires a primitive by hand. An owner may acquire it again.
func lockFrom(primitive func(*primitiveCall) acquire) func(*primitiveCall) operation {
	return func(c *primitiveCall) operation {
		acquire := primitive(c)
		c.readOwner()
		c.readLease()
		return c.lockToKeep(acquire)
	}
}

// lockToKeep answers when the lock is granted. With a lease, no watchdog renews the lock.
func (c *primitiveCall) lockToKeep(acquire acquire) operation {
	r := &c.request
	r.Wait, r.NoRenew = c.durationTo("wait", primitiveWait, 0, longestWait), r.Lease > 0
	return func() (any, error) {
		lock, count, err := c.acquireToKeep(acquire)
		if err != nil {
			return nil, err
		}
		answer := c.byHand(api.Locked, count)
		answer.Also, answer.LeaseMS, answer.Fence = r.Also, ms(r.Lease), lock.Fence()
		return answer, nil
	}
}

func (c *primitiveCall) unlock() operation {
	c.readStrategy()
	return c.release
}

// giveBack releases a primitive.
func (c *primitiveCall) giveBack() operation {
	c.readOwner()
	return c.release
}

// release releases the newest lock of the owner.
func (c *primitiveCall) release() (any, error) {
	r := c.request
	lock, left, since, ended := c.service.kept.pop(c.id())
	switch {
	case ended != "":
		return nil, refuse(http.StatusGone, api.Expired, "owner %s no longer holds the lock %s: %s", "所有者 %s 已不再持有锁 %s：%s", r.Owner, r.Key, ended)
	case lock == nil:
		return nil, refuse(http.StatusConflict, api.NotHeld,
			"owner %s does not hold the lock %s of %s, so it cannot unlock it: only the owner that locked it can",
			"所有者 %s 没有持有 %[3]s 的锁 %[2]s，不能解锁：只有加锁的所有者才能解锁", r.Owner, r.Key, c.id().of)
	}
	err := lock.Release(c.context())
	c.trace(c.context(), api.Released)
	if errors.Is(err, locks.ErrNotHeld) {
		return nil, refuse(http.StatusGone, api.Expired, "owner %s no longer holds the lock %s: it expired or was deleted before this unlock",
			"所有者 %s 已不再持有锁 %s：解锁之前锁已过期或被删除", r.Owner, r.Key)
	}
	answer := c.byHand(api.Unlocked, left)
	answer.HeldMS = ms(time.Since(since))
	answer.Warning = locks.ReleaseWarning(err).In(requestLanguage(c.gin))
	return answer, nil
}

// acquireToKeep acquires a lock that stays after the request, for longestHold at most. An owner acquires one at a time.
func (c *primitiveCall) acquireToKeep(acquire acquire) (lock *locks.Lock, count int, err error) {
	ctx, k, id, r, began := c.context(), &c.service.kept, c.id(), c.request, time.Now()
	leave, err := k.turns.Take(ctx, fmt.Sprint(id), r.Wait)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	if err := k.room(id, r.Also); err != nil {
		return nil, 0, err
	}
	r.Wait = max(0, r.Wait-time.Since(began))
	if lock, err = locks.AcquireForLonger(ctx, r, acquire); err != nil {
		return nil, 0, err
	}
	c.granted = time.Now()
	c.trace(ctx, api.Granted)
	expires := c.card.Unchecked && !c.card.Reentrant
	return lock, k.keep(id, lock, expires, func() { c.trace(context.Background(), api.Released) }), nil
}

// room returns locks.ErrFull if too many locks are kept, or too many names were used.
func (k *keptLocks) room(id keptID, also []string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) >= maxKept {
		maps.DeleteFunc(k.all, func(_ keptID, e *kept) bool { return e.ended != "" })
	}
	fresh := slices.DeleteFunc(append([]string{id.name}, also...), func(name string) bool { return k.names[name] })
	e, crowded := k.all[id], len(k.all) >= maxKept
	if e == nil && crowded || e != nil && len(e.locks) >= maxKept || len(fresh) > 0 && len(k.names)+len(fresh) > locks.MaxNames {
		return fmt.Errorf("%w: this replica keeps %d locks, and has used %d names", locks.ErrFull, len(k.all), len(k.names))
	}
	for _, name := range fresh {
		k.names[name] = true
	}
	return nil
}

// keep stores a lock, and returns how often the owner holds it. If the lock expires without notice, and was granted
// again, the older grant has expired.
func (k *keptLocks) keep(id keptID, lock *locks.Lock, expires bool, onEnd func()) (count int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.all[id]
	if e == nil || e.ended != "" || expires {
		e = &kept{since: time.Now()}
		k.all[id] = e
	}
	e.locks = append(e.locks, lock)
	end := func(why string) {
		if k.end(id, e, lock, why) {
			onEnd()
		}
	}
	timer := time.AfterFunc(longestHold, func() { end(fmt.Sprintf("it was held for %v, the longest time", longestHold)) })
	lock.OnRelease(func() { timer.Stop() })
	context.AfterFunc(lock.Context(), func() {
		if lost := context.Cause(lock.Context()); errors.Is(lost, locks.ErrLost) {
			end(lost.Error())
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

// end releases a lock that has ended. Its owner may hold it several times, or have other permits of a semaphore.
func (k *keptLocks) end(id keptID, e *kept, lock *locks.Lock, why string) (ended bool) {
	k.mu.Lock()
	held := len(e.locks)
	if k.all[id] == e {
		e.locks = slices.DeleteFunc(e.locks, func(l *locks.Lock) bool { return l == lock })
	}
	uses := held - len(e.locks)
	if uses > 0 && len(e.locks) == 0 {
		e.ended = why
	}
	k.mu.Unlock()
	for range uses {
		_ = lock.Release(context.Background())
	}
	return uses > 0
}

// ReleaseKept releases the locks that no request holds. A process calls it before it ends.
func (s *Service) ReleaseKept() {
	s.kept.mu.Lock()
	all := s.kept.all
	s.kept.all = map[keptID]*kept{}
	s.kept.mu.Unlock()
	var releasing sync.WaitGroup
	for _, e := range all {
		releasing.Go(func() {
			for _, lock := range slices.Backward(e.locks) {
				_ = lock.Release(context.Background())
			}
		})
	}
	releasing.Wait()
}
