package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

//go:embed acquire.lua
var acquireLua string

//go:embed renew.lua
var renewLua string

//go:embed relay.lua
var relayLua string

//go:embed release.lua
var releaseLua string

//go:embed raise.lua
var raiseLua string

// Redis does what Redisson's RLock does (tutorial 3.9.1), with its keys: a
// hash of owner -> count that expires, renewed every third of the lease, and a
// message to the waiters on release. Unlike it, it tells its holder when the
// lock is lost, and hands out a fence.
func Redis(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Reentrant(locks.Queue(newRedisLock(c, lease)))
}

// RedisOnce is Redis for keys of which there is no end, such as an order's own. Redis keeps
// their fence counters for a minute after the last grant only: no row may be guarded by them.
func RedisOnce(c redis.UniversalClient, lease time.Duration) locks.Locker {
	l := newRedisLock(c, lease)
	l.counterLife = []any{max(time.Minute, 2*lease).Milliseconds()}
	return locks.Reentrant(locks.Queue(l))
}

func newRedisLock(c redis.UniversalClient, lease time.Duration) *redisLock {
	return &redisLock{
		client: c, lease: lease, signals: newSignals(c),
		acquire: redis.NewScript(acquireLua), renew: redis.NewScript(renewLua),
		relay: redis.NewScript(relayLua), release: redis.NewScript(releaseLua), raise: redis.NewScript(raiseLua),
	}
}

type redisLock struct {
	client                                redis.UniversalClient
	lease                                 time.Duration
	signals                               *signals
	rivals                                rivals
	acquire, renew, relay, release, raise *redis.Script
	// counterLife is the scripts' last argument: for how many ms the fence counter outlives
	// a grant. Left out, it is kept for good.
	counterLife []any
}

// redisNames are the keys of one lock. The braces keep them on one node of a
// cluster; the channel is Redisson's.
func redisNames(key string) (lock, fence, channel string) {
	lock = "redis:" + key
	return lock, "{" + lock + "}:fence", "redisson_lock__channel:{" + lock + "}"
}

func (l *redisLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lease := cmp.Or(r.Lease, l.lease)
	_, _, channel := redisNames(r.Key)
	began, token := time.Now(), locks.Token(r.Owner)
	for {
		heard, asked := l.signals.heard(channel), time.Now()
		if r.Wait > 0 && l.rivals.theirs(channel, heard) {
			if err := l.listen(ctx, r, channel, heard, began, runTime); err != nil {
				return nil, err
			}
			if l.signals.heard(channel) > heard {
				continue
			}
			asked = time.Now()
		}
		// What was begun ends: a script whose caller hangs up may run after our clean-up.
		trying, done := locks.CleanUp(ctx)
		fence, busy, err := l.try(trying, r.Key, token, lease)
		done()
		if err != nil || ctx.Err() != nil {
			return nil, l.fail(ctx, r, token, err)
		}
		if fence > 0 {
			l.rivals.granted(channel, heard)
			return locks.NewLock(ctx, l.grant(r, token, lease, asked, fence)), nil
		}
		// A release wakes us. An expiry says nothing, so sleep no longer than
		// the lock can live; one without expiry is a stranger's: wait for its release.
		if busy < 0 {
			busy = r.Wait
		}
		if err := l.listen(ctx, r, channel, heard, began, busy); err != nil {
			return nil, err
		}
	}
}

// listen waits for a message after those heard, but no longer than limit.
func (l *redisLock) listen(ctx context.Context, r locks.Request, channel string, heard uint64, began time.Time, limit time.Duration) error {
	wake, leave := l.signals.listen(channel, heard)
	defer leave()
	return locks.Await(ctx, r, began, limit, wake)
}

// try returns the fence granted, or 0 and how long the holder's lease lasts.
func (l *redisLock) try(ctx context.Context, key, token string, lease time.Duration) (fence int64, busy time.Duration, err error) {
	lock, counter, _ := redisNames(key)
	reply, err := l.acquire.Run(ctx, l.client, []string{lock, counter}, append([]any{token, lease.Milliseconds()}, l.counterLife...)...).Int64Slice()
	if err != nil {
		return 0, 0, err
	}
	if reply[0] == 1 {
		return reply[1], 0, nil
	}
	return 0, time.Duration(reply[1]) * time.Millisecond, nil
}

// fail takes back what a try may have left whose answer is missing, or not
// wanted any more.
func (l *redisLock) fail(ctx context.Context, r locks.Request, token string, err error) error {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = locks.GiveBack(clean, time.Time{}, func(ctx context.Context) error { return l.free(ctx, r, token) })
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "redis", Err: err}
}

func (l *redisLock) grant(r locks.Request, token string, lease time.Duration, asked time.Time, fence int64) locks.Grant {
	lock, counter, _ := redisNames(r.Key)
	var heir string // the token of the task that may hold the lock after us
	return locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Fence: fence,
		Renew: func(ctx context.Context) error {
			return held(l.renew.Run(ctx, l.client, []string{lock}, token, lease.Milliseconds()).Int64())
		},
		AdvanceFence: func(ctx context.Context, floor int64) (int64, error) {
			fence, err := l.raise.Run(ctx, l.client, []string{lock, counter}, token, floor).Int64()
			return fence, held(fence, err)
		},
		Release: func(ctx context.Context) error { return l.unlock(ctx, r, token, &heir) },
		// Not to the heir once more: it has its turn by then, and asks for itself.
		Again: func(ctx context.Context) error { return l.freeBoth(ctx, r, token, heir) },
	}
}

// unlock leaves the lock to the next task of this process, a few times in a row, or
// frees it.
func (l *redisLock) unlock(ctx context.Context, r locks.Request, token string, next *string) error {
	_, _, channel := redisNames(r.Key)
	if r.Heir != nil && l.rivals.goOn(channel) {
		if heir := r.Heir(); heir != nil {
			*next = locks.Token(heir.Request.Owner)
			return l.leaveTo(ctx, heir, r, token, *next)
		}
	}
	return l.free(ctx, r, token)
}

// leaveTo makes the heir the holder, in one question. The lock is never free between.
func (l *redisLock) leaveTo(ctx context.Context, heir *locks.Heir, r locks.Request, token, next string) error {
	lock, counter, channel := redisNames(r.Key)
	lease, asked := cmp.Or(heir.Request.Lease, l.lease), time.Now()
	fence, err := l.relay.Run(ctx, l.client, []string{lock, counter}, append([]any{token, next, lease.Milliseconds()}, l.counterLife...)...).Int64()
	switch {
	case err != nil:
		// Whose it is now is not known: nobody's, then.
		clean, cancel := locks.CleanUp(ctx)
		defer cancel()
		return l.freeBoth(clean, r, token, next)
	case fence == 0:
		return locks.ErrNotHeld
	case heir.Inherit(l.grant(heir.Request, next, lease, asked, fence)):
		l.rivals.granted(channel, l.signals.heard(channel))
		return nil
	default: // it has just hung up
		return l.free(ctx, r, next)
	}
}

// freeBoth frees the lock, which may be ours or already the next one's; next may be "".
// Ours first: a relay that comes late finds nothing to hand on.
func (l *redisLock) freeBoth(ctx context.Context, r locks.Request, token, next string) error {
	err := l.free(ctx, r, token)
	if next == "" {
		return err
	}
	switch gone := l.free(ctx, r, next); {
	case err == nil && errors.Is(gone, locks.ErrNotHeld):
		return nil
	case err == nil, errors.Is(err, locks.ErrNotHeld):
		return gone
	default:
		return err
	}
}

// free releases, and tells those who wait.
func (l *redisLock) free(ctx context.Context, r locks.Request, token string) error {
	lock, _, channel := redisNames(r.Key)
	next, heard := r.Next != nil && r.Next(), l.signals.heard(channel)
	told, err := l.release.Run(ctx, l.client, []string{lock, channel}, token).Int64()
	if err != nil {
		return err
	}
	l.rivals.told(channel, uint64(max(0, told-1)), next, heard) // one of those told is this process
	if told < 0 {
		return locks.ErrNotHeld
	}
	return nil
}

// held reads a script's answer: 0 is "not ours".
func held(answer int64, err error) error {
	if err == nil && answer == 0 {
		return locks.ErrNotHeld
	}
	return err
}

// Clear removes lock and counter, and wakes everybody who waited.
func (l *redisLock) Clear(ctx context.Context, key string) error {
	lock, counter, channel := redisNames(key)
	if err := l.client.Del(ctx, lock, counter).Err(); err != nil {
		return err
	}
	return l.client.Publish(ctx, channel, "0").Err()
}

func (*redisLock) Card() locks.Card {
	return locks.Card{
		ID: "redis", Family: "redis", Source: "3.9.1; 002, 003", Scope: locks.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql", "redis"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: locks.Text{EN: "One Redis, as Redisson does it", ZH: "Redis 可重入锁（Redisson 方式）"},
		Summary: locks.Text{
			EN: "A hash that expires, renewed by a watchdog while the holder lives; a release wakes the waiters; a holder that lost the lock is told.",
			ZH: "带过期的哈希，看门狗续期；释放时通知等待者；锁丢了会告诉持有者。",
		},
		Protects: []locks.Hazard{locks.Race, locks.ReplicaRace, locks.Crash, locks.Overrun, locks.Cutoff, locks.LostReply, locks.Nesting, locks.Herd},
		Breaks: []locks.Break{
			{Hazard: locks.Failover, Why: locks.Text{
				EN: "Replication is asynchronous: the new master may never have heard of the lock.",
				ZH: "主从复制是异步的，新主可能没有这把锁。",
			}},
			{Hazard: locks.Pause, Why: locks.Text{
				EN: "A holder that sleeps past its lease still writes when it wakes up, unless the write is fenced.",
				ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
			}},
			{Hazard: locks.ClockJump, Why: locks.Text{
				EN: "The lease runs on Redis's clock: when it leaps, the key is gone early.",
				ZH: "租期按 Redis 的时钟走，时钟一跳，键就提前消失。",
			}},
		},
		Tutorial: []locks.Figure{{Note: "Redisson", Throughput: 49.2, MedianMS: 264, Remaining: 0}},
	}
}
