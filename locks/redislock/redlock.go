package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Redlock asks five independent masters. A majority must grant the lock in time (tutorial 3.8,
// 3.9.4; redsync). A minority that is down has no effect. Without a majority, no lock is granted.
//
// DANGER: a holder may have the lock on three masters only. If one of them loses its data, as in a
// fail-over or a restart without persistence, the next request gets a majority, too.
func Redlock(nodes []redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queue(newRedlock(nodes, lease)))
}

func newRedlock(nodes []redis.UniversalClient, lease time.Duration) *redlock {
	pools, each := make([]pool.Pool, len(nodes)), make([]*redsync.Redsync, len(nodes))
	for i, node := range nodes {
		pools[i] = goredis.NewPool(node)
		each[i] = redsync.New(pools[i])
	}
	return &redlock{redsync: redsync.New(pools...), each: each, nodes: nodes, lease: lease, fences: newFences(nodes, lease)}
}

const (
	shortestRetry = 2 * time.Millisecond
	longestRetry  = 12 * time.Millisecond
)

type redlock struct {
	redsync *redsync.Redsync
	each    []*redsync.Redsync // one for each master
	nodes   []redis.UniversalClient
	lease   time.Duration
	fences  fences
}

func (l *redlock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lease := cmp.Or(r.Lease, l.lease)
	for began := time.Now(); ; {
		asked, m := time.Now(), l.newMutex(r, lease)
		// DANGER: the SETs must end before our clean-up begins, or a master may execute a SET after
		// the clean-up. So the end of ctx does not cancel the SETs.
		trying, done := locks.CleanUp(ctx)
		err := m.TryLockContext(trying)
		done()
		if ctx.Err() != nil {
			_ = m.unlock(ctx, time.Time{})
			return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
		}
		if err == nil {
			return l.lock(ctx, r, m, lease, asked)
		}
		failed, minority := failuresOf(err), (len(l.nodes)-1)/2
		if failed.unreachable > minority {
			_ = m.unlock(ctx, time.Time{})
		} else {
			m.sweep(ctx, failed)
		}
		down := failed.unreachable
		if time.Since(began) < r.Wait { // at the last try, a slow master counts as unreachable, too
			down -= failed.tooSlow
		}
		if down > minority {
			return nil, &stock.Unavailable{Backend: "redlock", Err: fmt.Errorf("%d of %d masters did not answer: %w", failed.unreachable, len(l.nodes), err)}
		}
		// The pause is random. Otherwise waiters could collide again, each with a minority.
		if err := locks.SleepRetry(ctx, r, began, shortestRetry+locks.Jitter(ctx, longestRetry-shortestRetry)); err != nil {
			return nil, err
		}
	}
}

func (l *redlock) lock(ctx context.Context, r locks.Request, m *mutex, lease time.Duration, asked time.Time) (*locks.Lock, error) {
	grant := locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, NoRenew: r.NoRenew,
		Renew: m.extend,
		AdvanceFence: func(ctx context.Context, floor int64) (int64, error) {
			fence, err := l.fences.mint(ctx, r.Key, floor)
			if err == nil {
				// DANGER: without this renewal, a holder whose lock is gone would get a fence above its successor's.
				err = m.extend(ctx)
			}
			return fence, err
		},
		Release: func(ctx context.Context) error { return m.unlock(ctx, time.Now().Add(lease)) },
	}
	if r.Fenced {
		fence, err := l.fences.mint(ctx, r.Key, 0)
		if err != nil {
			_ = m.unlock(ctx, time.Time{})
			return nil, notAcquired(ctx, r, "redlock", err)
		}
		grant.Fence = fence
	}
	return locks.NewLock(ctx, grant), nil
}

func (l *redlock) Clear(ctx context.Context, key string) error {
	var errs []error
	for _, node := range l.nodes {
		errs = append(errs, node.Del(ctx, "redlock:"+key).Err())
	}
	return errors.Join(errs...)
}

func (*redlock) Card() api.Card {
	return card(api.Card{
		ID: "redlock", Source: "3.8, 3.9.4; 003, 004", Core: true, Backends: []string{"mysql", "redlock"},
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "Redlock over five masters", ZH: "红锁 Redlock"},
		Summary: api.Text{
			EN: "Five independent Redis; a request that gets a majority in time holds the lock.",
			ZH: "五个独立的 Redis，在时限内拿到多数就算持有锁。",
		},
		When: api.Text{
			EN: "Choose it if the lock must survive a dead Redis, and you have five independent ones whose clocks do not jump. Otherwise use `zk`.",
			ZH: "Redis 宕机也不能丢锁，又有五个独立的、时钟不会跳变的 Redis 时选它。否则用 `zk`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss, api.LostReply, api.Nesting, api.Operator, api.Starved, api.RenewalReply},
		Breaks: []api.Break{
			{Hazard: api.Pause},
			{Hazard: api.BareMajority, Why: api.Text{
				EN: "If only three masters granted the lock and one of them loses its data, the other two and the empty one grant it again.",
				ZH: "如果只有三个节点加锁成功，其中一个又丢失了数据，它和另外两个节点会再次加锁成功。",
			}},
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "When the clocks of a majority jump, the keys expire early.",
				ZH: "多数节点时钟跳变时，键会提前消失。",
			}},
			{Hazard: api.Polling, Why: api.Text{
				EN: "No master sends a message when the lock is free: one waiter of each process tries again every few milliseconds.",
				ZH: "锁释放时没有节点发送通知：每个进程有一个等待者每隔几毫秒重试一次。",
			}},
		},
		Tutorial: []api.Figure{},
	})
}
