package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// UUID stores a random value, and compares it before it deletes the key (tutorial 3.3; 001).
// lease is for requests that name none.
func UUID(c redis.UniversalClient, lease time.Duration) locks.Locker { return &redisUUID{c, lease} }

type redisUUID struct {
	client redis.UniversalClient
	lease  time.Duration
}

const compared api.Step = "compared" // has found its own value, deletes the key next

func (l *redisUUID) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, token, lease := "redis-uuid:"+r.Key, locks.Token(r.Owner), leaseOf(r, l.lease)
	release := func(ctx context.Context) error { return l.unlock(ctx, r, lock, token) }
	asked, err := poll(ctx, r, try{
		take:     func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, token, lease).Result() },
		giveBack: release,
		unsure:   release, // the value shows whether the key is ours
	})
	if err != nil {
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Release: release}), nil
}

func (l *redisUUID) unlock(ctx context.Context, r locks.Request, lock, token string) error {
	value, err := l.client.Get(ctx, lock).Result()
	if errors.Is(err, redis.Nil) || err == nil && value != token {
		return locks.ErrNotHeld
	}
	if err != nil {
		return err
	}
	// DANGER: the comparison and the DEL are two commands. If the lease ends between them and
	// another request creates the key, we delete the lock of that holder.
	locks.Trace(ctx, compared, r.Key, r.Owner, 0)
	return uncut(ctx, func(ctx context.Context) error { // a pause above must not use up the time for it
		return held(l.client.Del(ctx, lock).Result())
	})
}

// Clear deletes the key, also that of a holder.
func (l *redisUUID) Clear(ctx context.Context, key string) error {
	return l.client.Del(ctx, "redis-uuid:"+key).Err()
}

func (*redisUUID) Card() api.Card {
	return api.Card{
		ID: "redis-uuid", Family: "redis", Source: "3.3; 001", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Locker: true, Lease: true, LeasePerRequest: true, Slow: true,
		Title: api.Text{EN: "A random value, GET before DEL", ZH: "UUID 防误删"},
		Summary: api.Text{
			EN: "The value is random; the release compares it with a GET, and deletes the key in a second command.",
			ZH: "值是随机的 UUID；释放时先 GET 比较，再用另一条命令 DEL。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.LostReply},
		Breaks: append([]api.Break{
			{Hazard: api.ForeignUnlock, At: compared, Why: api.Text{
				EN: "The compare and the DEL are two steps: a lease that ends between them lets the DEL hit the next holder's lock.",
				ZH: "比较和 DEL 是两步，租期恰好在中间到期，删掉的就是别人的锁。",
			}},
		}, usual(api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump)...),
	}
}
