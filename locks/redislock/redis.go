package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

var (
	//go:embed acquire.lua
	acquireLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string
	//go:embed raise.lua
	raiseLua string
)

// Redis returns Redisson's RLock (tutorial 3.9.1), with its keys: a hash of owner -> count
// that expires, renewed every third of the lease, and a message to the waiters at each
// release. Other than Redisson's, it notifies its holder when the lock is lost, and each
// grant has a fencing token.
func Redis(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queue(newRedisLock(c, lease)))
}

func newRedisLock(c redis.UniversalClient, lease time.Duration) *redisLock {
	return &redisLock{
		client: c, lease: lease, notifier: newNotifier(c, 5*time.Millisecond), // short: no messages during backOff
		acquire: redis.NewScript(acquireLua), renew: redis.NewScript(renewLua),
		release: redis.NewScript(releaseLua), raise: redis.NewScript(raiseLua),
	}
}

type redisLock struct {
	client                         redis.UniversalClient
	lease                          time.Duration
	notifier                       *notifier
	acquire, renew, release, raise *redis.Script
	counterLife                    time.Duration // of the fence counter after a grant; 0: for ever
}

// redisNames returns the keys of one lock. The braces keep them on one node of a cluster;
// the channel is Redisson's.
func redisNames(key string) (lock, fence, channel string) {
	lock = "redis:" + key
	return lock, "{" + lock + "}:fence", "redisson_lock__channel:{" + lock + "}"
}

// backOff keeps a herd from forming. A release wakes one waiter of each replica, and only one
// of them wins. The others stay away until 30 ms after their first try. From then on they
// try at every release, so that no replica starves.
const backOff = 30 * time.Millisecond

func (l *redisLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lease, token := cmp.Or(r.Lease, l.lease), locks.Token(r.Owner)
	_, _, channel := redisNames(r.Key)
	for began, woken := time.Now(), false; ; {
		// The count comes before the try: a release between try and wait is not missed.
		sequence, asked := l.notifier.sequence(channel), time.Now()
		// DANGER: the script must end before our clean-up begins, or the lock may be granted
		// after it. So a caller that goes away does not cancel the script.
		trying, done := locks.CleanUp(ctx)
		fence, busy, err := l.try(trying, r.Key, token, lease)
		done()
		if err != nil || ctx.Err() != nil {
			return nil, l.fail(ctx, r, token, err)
		}
		if fence > 0 {
			return locks.NewLock(ctx, l.grant(r, token, lease, asked, fence)), nil
		}
		if away := backOff - time.Since(began); woken && away > 0 {
			woken, err = false, locks.SleepRetry(ctx, r, began, away)
		} else {
			woken = sequence > 0 // 0: the confirmation of a new subscription will wake us
			err = l.notifier.wait(ctx, r, began, channel, sequence, busy)
		}
		if err != nil {
			return nil, err
		}
	}
}

// try returns the fence of the grant, or 0 and the time until the lock expires: without a message.
func (l *redisLock) try(ctx context.Context, key, token string, lease time.Duration) (fence int64, busy time.Duration, err error) {
	lock, counter, _ := redisNames(key)
	reply, err := l.acquire.Run(ctx, l.client, []string{lock, counter}, token, lease.Milliseconds(), l.counterLife.Milliseconds()).Int64Slice()
	if err != nil {
		return 0, 0, err
	}
	if reply[0] == 1 {
		return reply[1], 0, nil
	}
	return 0, time.Duration(reply[1]) * time.Millisecond, nil
}

// fail releases what the try may have acquired: its answer was lost, or its caller has gone.
func (l *redisLock) fail(ctx context.Context, r locks.Request, token string, err error) error {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = locks.GiveBack(clean, time.Time{}, func(ctx context.Context) error { return l.unlock(ctx, r.Key, token) })
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "redis", Err: err}
}

// grant has what package locks needs to renew, verify and release the lock.
func (l *redisLock) grant(r locks.Request, token string, lease time.Duration, asked time.Time, fence int64) locks.Grant {
	lock, counter, _ := redisNames(r.Key)
	release := func(ctx context.Context) error { return l.unlock(ctx, r.Key, token) }
	return locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Fence: fence, Release: release, Again: release,
		Renew: func(ctx context.Context) error {
			return held(l.renew.Run(ctx, l.client, []string{lock}, token, lease.Milliseconds()).Int64())
		},
		AdvanceFence: func(ctx context.Context, floor int64) (int64, error) {
			fence, err := l.raise.Run(ctx, l.client, []string{lock, counter}, token, floor).Int64()
			return fence, held(fence, err)
		},
	}
}

// unlock frees the lock and sends a message to all who wait for it.
func (l *redisLock) unlock(ctx context.Context, key, token string) error {
	lock, _, channel := redisNames(key)
	return held(l.release.Run(ctx, l.client, []string{lock, channel}, token).Int64())
}

// held reads a script's answer: 0 is "not ours".
func held(answer int64, err error) error {
	if err == nil && answer == 0 {
		return locks.ErrNotHeld
	}
	return err
}

// Clear removes lock and counter, and wakes all waiters.
func (l *redisLock) Clear(ctx context.Context, key string) error {
	lock, counter, channel := redisNames(key)
	if err := l.client.Del(ctx, lock, counter).Err(); err != nil {
		return err
	}
	return l.client.Publish(ctx, channel, "0").Err()
}

func (*redisLock) Card() api.Card {
	return api.Card{
		ID: "redis", Family: "redis", Source: "3.9.1; 002, 003", Scope: api.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql", "redis"}, Locker: true, Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "One Redis, as Redisson does it", ZH: "Redis 可重入锁（Redisson 方式）"},
		Summary: api.Text{
			EN: "A hash that expires, renewed by a watchdog while the holder lives; a release wakes the waiters; the holder is notified when the lock is lost.",
			ZH: "带过期的哈希，看门狗续期；释放时通知等待者；锁丢了会告诉持有者。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Cutoff, api.LostReply, api.Nesting, api.Herd},
		Breaks: []api.Break{
			{Hazard: api.Failover, Why: api.Text{
				EN: "Replication is asynchronous: the new master may not have the lock.",
				ZH: "主从复制是异步的，新主可能没有这把锁。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that is paused beyond its lease still writes when it goes on, unless the write is fenced.",
				ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
			}},
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "The lease runs on Redis's clock: when that jumps, the key expires early.",
				ZH: "租期按 Redis 的时钟走，时钟一跳，键就提前消失。",
			}},
		},
		Tutorial: []api.Figure{{Note: "Redisson", Throughput: 49.2, MedianMS: 264, Remaining: 0}},
	}
}
