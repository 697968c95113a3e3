package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

// Redlock asks five independent masters and holds the lock when a majority
// granted it in time (tutorial 3.8, 3.9.4; redsync). Losing a minority of them
// changes nothing; losing a majority grants nothing.
func Redlock(nodes []redis.UniversalClient, lease time.Duration) locks.Locker {
	pools := make([]pool.Pool, len(nodes))
	for i, node := range nodes {
		pools[i] = goredis.NewPool(node)
	}
	return locks.Reentrant(locks.Queue(&redlock{
		redsync: redsync.New(pools...), nodes: nodes, lease: lease, fences: newFences(nodes),
	}))
}

type redlock struct {
	redsync *redsync.Redsync
	nodes   []redis.UniversalClient
	lease   time.Duration
	fences  fences
}

func (l *redlock) Acquire(ctx context.Context, r locks.Request) (*locks.Hold, error) {
	lease := r.Lease
	if lease == 0 {
		lease = l.lease
	}
	began := time.Now()
	for {
		asked, mutex := time.Now(), l.newMutex(r, lease)
		// What was begun ends: a SET whose caller hangs up may come after our clean-up.
		trying, done := locks.CleanUp(ctx)
		err := mutex.TryLockContext(trying)
		done()
		if ctx.Err() != nil {
			_ = l.unlock(ctx, mutex)
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		}
		if err == nil {
			return l.hold(ctx, r, mutex, lease, asked)
		}
		if unreachable(err) > (len(l.nodes)-1)/2 {
			_ = l.unlock(ctx, mutex)
		}
		if l.lacking(err, time.Since(began) >= r.Wait) {
			return nil, &stock.Unavailable{Backend: "redlock", Err: fmt.Errorf("%d of %d masters: %w", unreachable(err), len(l.nodes), err)}
		}
		// Random, so that rivals who split the masters don't meet again.
		if err := locks.Doze(ctx, r, began, 2*time.Millisecond+rand.N(10*time.Millisecond)); err != nil { //nolint:gosec // jitter, not a secret
			return nil, err
		}
	}
}

// newMutex is for one try. The value is its own too: what comes late of a try that
// was too slow, be it the grant or its undoing, must not meet the next one's.
// With it set, unlocking takes back also what a failed try left on some nodes.
func (l *redlock) newMutex(r locks.Request, lease time.Duration) *redsync.Mutex {
	token := locks.Token(r.Owner)
	return l.redsync.NewMutex("redlock:"+r.Key,
		redsync.WithExpiry(lease), redsync.WithTimeoutFactor(float64(nodeTimeout(lease))/float64(lease)),
		redsync.WithValue(token), redsync.WithGenValueFunc(func() (string, error) { return token, nil }))
}

// lacking reports whether there is no majority of masters to ask. Those that
// only were too slow are asked again while there is time: a machine under load
// is no outage.
func (l *redlock) lacking(err error, last bool) bool {
	down := unreachable(err)
	if !last {
		down -= tooSlow(err)
	}
	return down > (len(l.nodes)-1)/2
}

// nodeTimeout is how long one master may take to answer: far less than the
// lease, or a single one that hangs would use it up.
func nodeTimeout(lease time.Duration) time.Duration {
	return min(max(lease/20, 20*time.Millisecond), 200*time.Millisecond)
}

// hold begins the hold, and mints its fence where one is wanted.
func (l *redlock) hold(ctx context.Context, r locks.Request, m *redsync.Mutex, lease time.Duration, asked time.Time) (*locks.Hold, error) {
	grant := locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease,
		Renew: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, nodeTimeout(lease)) // redsync waits for all of them
			defer cancel()
			ok, err := m.ExtendContext(ctx)
			return majority(ok, err, len(l.nodes))
		},
		Raise:   func(ctx context.Context, floor int64) (int64, error) { return l.fences.mint(ctx, r.Key, floor) },
		Release: func(ctx context.Context) error { return l.unlock(ctx, m) },
	}
	if r.Fenced {
		fence, err := l.fences.mint(ctx, r.Key, 0)
		if err != nil {
			_ = l.unlock(ctx, m)
			if ctx.Err() != nil {
				return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
			}
			return nil, &stock.Unavailable{Backend: "redlock", Err: err}
		}
		grant.Fence = fence
	}
	return locks.NewHold(ctx, grant), nil
}

// unlockTimeout bounds an unlock: a master that hangs must not hold up the next
// holder. What stays behind on it runs out with its lease.
const unlockTimeout = 500 * time.Millisecond

// unlock asks every master, also those whose grant timed out: the answer may
// have been late, and the key there.
func (l *redlock) unlock(ctx context.Context, m *redsync.Mutex) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	ok, err := m.UnlockContext(ctx)
	return majority(ok, err, len(l.nodes))
}

// majority reads redsync's answer: the lock is not held where so many masters
// say so that the others are no majority. Where it hangs on those that were
// silent, nobody knows.
func majority(ok bool, err error, nodes int) error {
	switch {
	case ok:
		return nil
	case err == nil || refusals(err) > (nodes-1)/2:
		return locks.ErrNotHeld
	default:
		return err
	}
}

// refusals counts the masters that have no such lock, or another one's.
func refusals(err error) int {
	return count(err, func(err error) int {
		var taken *redsync.ErrTaken
		var nodeTaken *redsync.ErrNodeTaken
		switch {
		case errors.As(err, &taken):
			return len(taken.Nodes)
		case errors.As(err, &nodeTaken) || errors.Is(err, redsync.ErrLockAlreadyExpired):
			return 1
		}
		return 0
	})
}

// unreachable counts the masters that gave no answer.
func unreachable(err error) int {
	return count(err, func(err error) int {
		var down *redsync.RedisError
		if errors.As(err, &down) {
			return 1
		}
		return 0
	})
}

// tooSlow counts those of them that did not answer in time.
func tooSlow(err error) int {
	return count(err, func(err error) int {
		var timeout net.Error
		if unreachable(err) == 1 && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()) {
			return 1
		}
		return 0
	})
}

// count adds up what each of the errors that redsync has joined stands for.
func count(err error, each func(error) int) int {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return each(err)
	}
	n := 0
	for _, e := range joined.Unwrap() {
		n += count(e, each)
	}
	return n
}

// Clear removes the lock and the fences from every master.
func (l *redlock) Clear(ctx context.Context, key string) error {
	var errs []error
	for _, node := range l.nodes {
		errs = append(errs, node.Del(ctx, "redlock:"+key, fenceKey(key)).Err())
	}
	return errors.Join(errs...)
}

func (*redlock) Card() locks.Card {
	return locks.Card{
		ID: "redlock", Family: "redis", Source: "3.8, 3.9.4; 003, 004", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redlock"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: locks.Text{EN: "Redlock over five masters", ZH: "红锁 Redlock"},
		Summary: locks.Text{
			EN: "Five independent Redis; whoever gets a majority in time holds the lock.",
			ZH: "五个独立的 Redis，在时限内拿到多数就算持有锁。",
		},
		Protects: []locks.Hazard{locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Failover, locks.MinorityLoss, locks.LostReply, locks.Nesting},
		Breaks: []locks.Break{
			{Hazard: locks.Pause, Why: locks.Text{
				EN: "A holder that sleeps past its lease still writes when it wakes up, unless the write is fenced.",
				ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
			}},
			{Hazard: locks.ClockJump, Why: locks.Text{
				EN: "When the clocks of a majority leap, the keys are gone early.",
				ZH: "多数节点时钟跳变时，键会提前消失。",
			}},
		},
		Tutorial: []locks.Figure{},
	}
}
