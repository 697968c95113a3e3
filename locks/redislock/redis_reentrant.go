package redislock

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

//go:embed redis_reentrant_acquire.lua
var reentrantAcquireLua string

//go:embed redis_reentrant_release.lua
var reentrantReleaseLua string

// ReentrantLock is a hash of owner -> count (tutorial 3.6). The holder may acquire the lock again,
// each time with a new Lock, even from another process. The last release frees the key. Each grant
// also has a field in the hash, which its release deletes. So a release whose answer was lost can
// be sent again, but counts only once.
func ReentrantLock(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return newReentrant(c, "redis-reentrant:", lease)
}

func newReentrant(c redis.UniversalClient, prefix string, lease time.Duration) *redisReentrant {
	return &redisReentrant{polledLock{c, prefix, lease}, redis.NewScript(reentrantAcquireLua), redis.NewScript(reentrantReleaseLua)}
}

type redisReentrant struct {
	polledLock
	take, release *redis.Script
}

func (l *redisReentrant) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	// DANGER: the lease is not renewed, and the Grant has no Lease, so this holder does not notice the
	// end of its lease. It then works at the same time as the next holder.
	return l.attempt(r).acquire(ctx, r)
}

// DANGER: if the answer to an acquisition is lost, the count may be one too high. Then the lock
// stays until its lease ends. The tutorial does not solve this problem; the strategy redis does.
func (l *redisReentrant) attempt(r locks.Request) attempt {
	lock, lease := l.of(r)
	grant := locks.Token(r.Owner) // names this grant, so that a repeated release counts once
	release := func(ctx context.Context) error {
		return counted(l.release.Run(ctx, l.client, []string{lock}, r.Owner, grant).Int64())
	}
	return attempt{
		take: func(ctx context.Context) (bool, error) {
			return l.take.Run(ctx, l.client, []string{lock}, r.Owner, millis(lease), grant).Bool()
		},
		pause: 60 * time.Millisecond,
		grant: locks.Grant{Release: release, Again: release},
	}
}

// counted translates the answer of the release script: a negative answer means ErrNotHeld.
func counted(answer int64, err error) error {
	if err == nil && answer < 0 {
		return locks.ErrNotHeld
	}
	return err
}

func (*redisReentrant) Card() api.Card {
	return card(api.Card{
		ID: "redis-reentrant", Source: "3.6", Lease: true, LeasePerRequest: true, Unchecked: true, Reentrant: true, Slow: true,
		Title: api.Text{EN: "A hash that counts its owner", ZH: "Hash + Lua 可重入锁"},
		Summary: api.Text{
			EN: "A hash of owner and count, changed by scripts: the owner may acquire again, and its last release frees the lock.",
			ZH: "用哈希记持有者和次数，由脚本加减：持有者可再次加锁，最后一次释放才真正解锁。",
		},
		When: api.Text{
			EN: "Not for production: nothing renews the lease, and a slow holder writes beside the next one. Use `redis`, which is re-entrant as well.",
			ZH: "不要用于生产环境：没有续期，慢的持有者会和下一个同时写入。请改用同样可重入的 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.ForeignUnlock, api.Nesting},
		Tutorial: []api.Figure{{Throughput: 47.7, MedianMS: 32, Remaining: 0}},
	}, api.LostReply, api.Overrun, api.Cutoff, api.Pause, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
