package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

var (
	//go:embed acquire.lua
	acquireLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string
	//go:embed pass_on.lua
	passOnLua string
	//go:embed raise.lua
	raiseLua string
	//go:embed count.lua
	countLua string
)

// Redis returns a lock like Redisson's RLock (tutorial 3.9.1). A hash stores the holder's token
// and its number of acquisitions. It expires unless it is renewed every third of the lease. A release sends a message to the
// waiters. Unlike in Redisson, a holder learns of a lost lock, and each grant has a fencing token.
func Redis(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queue(newRedisLock(c, lease)))
}

// RedisOnce is Redis for keys that are used once, such as a key for each order. A minute or more
// after the last grant, fences begin at 1 again, so they cannot protect a row from late writes.
func RedisOnce(c redis.UniversalClient, lease time.Duration) locks.Locker {
	l := newRedisLock(c, lease)
	l.counterLife = max(time.Minute, 2*lease)
	return locks.Reentrant(locks.Queue(l))
}

func newRedisLock(c redis.UniversalClient, lease time.Duration) *redisLock {
	return &redisLock{
		client: c, lease: lease, notifier: newNotifier(c, 50*time.Millisecond),
		acquire: redis.NewScript(acquireLua), renew: redis.NewScript(renewLua),
		release: redis.NewScript(releaseLua), raise: redis.NewScript(raiseLua),
		count: redis.NewScript(countLua), pass: redis.NewScript(passOnLua),
	}
}

type redisLock struct {
	client                                      redis.UniversalClient
	lease                                       time.Duration
	notifier                                    *notifier
	acquire, renew, release, raise, count, pass *redis.Script
	counterLife                                 time.Duration // of the fence counter after a grant; 0 means for ever
}

// The braces keep the keys of one lock on one node of a cluster. The channel's name is Redisson's.
func redisNames(key string) (lock, fence, channel string) {
	lock = "redis:" + key
	return lock, "{" + lock + "}:fence", "redisson_lock__channel:{" + lock + "}"
}

// yield is how long a process waits for each message of the processes that go first. Without a message it tries, as
// the lock may be free.
const yield = 5 * time.Millisecond

func (l *redisLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lease, token := cmp.Or(r.Lease, l.lease), locks.Token(r.Owner)
	_, _, channel := redisNames(r.Key)
	for began, late := time.Now(), false; ; {
		// Read the sequence before the try, so that no release between try and wait is missed.
		sequence, asked := l.notifier.sequence(channel), time.Now()
		if !late && l.notifier.ahead(channel) && time.Since(began) < r.Wait {
			if err := l.notifier.wait(ctx, r, began, channel, sequence, yield); err != nil {
				return nil, err
			}
			late = l.notifier.sequence(channel) == sequence // no message
			continue
		}
		late = false
		// DANGER: the script must end before our clean-up begins, or the lock may be granted
		// after the clean-up. So the end of ctx does not cancel the script.
		trying, done := locks.CleanUp(ctx)
		fence, busy, err := l.try(trying, r.Key, token, lease)
		done()
		if err != nil || ctx.Err() != nil {
			undo(ctx, func(ctx context.Context) error { return l.unlock(ctx, r.Key, token) })
			return nil, notAcquired(ctx, r, "redis", err)
		}
		if fence > 0 {
			return locks.NewLock(ctx, l.grant(r, token, lease, asked, fence)), nil
		}
		if err := l.notifier.wait(ctx, r, began, channel, sequence, busy); err != nil {
			return nil, err
		}
	}
}

// try sends one request. Without a grant, fence is 0 and busy is the rest of the holder's lease.
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

// grant describes a lock that Redis has granted. Its next token is for the request that gets the lock by PassOn.
func (l *redisLock) grant(r locks.Request, token string, lease time.Duration, asked time.Time, fence int64) locks.Grant {
	lock, counter, _ := redisNames(r.Key)
	next := locks.Token(r.Owner)
	g := locks.Grant{Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, NoRenew: r.NoRenew, Fence: fence}
	g.Release = func(ctx context.Context) error { return l.unlock(ctx, r.Key, token) }
	g = l.renewed(g, lock, counter, token)
	g.PassOn = func(ctx context.Context) (locks.Grant, error) {
		asked := time.Now()
		fence, err := l.pass.Run(ctx, l.client, []string{lock, counter}, token, next, lease.Milliseconds()).Int64()
		return l.grant(r, next, lease, asked, fence), notHeldIfZero(fence, err)
	}
	// DANGER: the own token first. A script that Redis executes late then finds no lock that it could pass on.
	g.Again = func(ctx context.Context) error {
		err := l.unlock(ctx, r.Key, token)
		if (err == nil || errors.Is(err, locks.ErrNotHeld)) && l.unlock(ctx, r.Key, next) == nil {
			return nil
		}
		return err
	}
	return g
}

func (l *redisLock) renewed(g locks.Grant, lock, counter, token string) locks.Grant {
	g.Again = g.Release
	g.Renew = func(ctx context.Context) error {
		return run(ctx, l.client, l.renew, []string{lock}, token, g.Lease.Milliseconds())
	}
	g.Count = func(ctx context.Context, uses int) error {
		return run(ctx, l.client, l.count, []string{lock}, token, uses)
	}
	g.AdvanceFence = func(ctx context.Context, floor int64) (int64, error) {
		fence, err := l.raise.Run(ctx, l.client, []string{lock, counter}, token, floor).Int64()
		return fence, notHeldIfZero(fence, err)
	}
	return g
}

func (l *redisLock) unlock(ctx context.Context, key, token string) error {
	lock, _, channel := redisNames(key)
	before := l.notifier.snapshot(channel)
	// 0: not held; else 1 and the number of processes that were notified
	notified, err := l.release.Run(ctx, l.client, []string{lock, channel}, token).Int64()
	if notified > 0 {
		l.notifier.giveWay(channel, before, uint64(notified-1))
	}
	return notHeldIfZero(notified, err)
}

func (l *redisLock) Clear(ctx context.Context, key string) error {
	lock, _, channel := redisNames(key) // the counter stays: a holder from before the reset has a lower fence
	if err := l.client.Del(ctx, lock).Err(); err != nil {
		return err
	}
	return l.client.Publish(ctx, channel, "0").Err()
}

func (*redisLock) Card() api.Card {
	return card(api.Card{
		ID: "redis", Source: "3.9.1; 002, 003",
		Core: true, Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "One Redis, as Redisson does it", ZH: "Redis 可重入锁（Redisson 方式）"},
		Summary: api.Text{
			EN: "A hash that expires, renewed by a watchdog while the holder lives; a release wakes the waiters; the holder is notified when the lock is lost.",
			ZH: "带过期的哈希，看门狗续期；释放时通知等待者；锁丢失时通知持有者。",
		},
		When: api.Text{
			EN: "Choose it for a fast lock if you have Redis. A pause or a fail-over can let two holders write: if that does harm, use fencing tokens.",
			ZH: "已经有 Redis、想要一把快的锁时选它。停顿或主从切换时，两个持有者可能同时写入；不能接受就给写入加栅栏号。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Cutoff, api.LostReply, api.Nesting, api.Herd, api.Operator, api.Starved, api.RenewalReply},
		Tutorial: []api.Figure{{Note: api.Text{EN: "Redisson", ZH: "Redisson"}, Throughput: 49.2, MedianMS: 264, Remaining: 0}},
	}, api.Failover, api.Pause, api.ClockJump)
}
