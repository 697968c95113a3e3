package redislock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// SetNX is the simplest Redis lock (tutorial 3.1): create the key to lock, delete it to release.
func SetNX(c redis.UniversalClient) locks.Locker {
	return &redisSetNX{polledLock{client: c, prefix: "redis-setnx:"}}
}

type redisSetNX struct{ polledLock }

func (l *redisSetNX) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, _ := l.of(r)
	return attempt{
		// DANGER: only the holder's release or Clear deletes this key. If the holder dies, or the
		// answer with its grant is lost, all other requests wait for a Clear.
		take:  func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, "locked", 0).Result() },
		pause: 100 * time.Millisecond,
		grant: locks.Grant{
			Release: func(ctx context.Context) error { return notHeldIfZero(l.client.Del(ctx, lock).Result()) },
		},
	}.acquire(ctx, r)
}

func (*redisSetNX) Card() api.Card {
	return card(api.Card{
		ID: "redis-setnx", Source: "3.1", Slow: true,
		Title: api.Text{EN: "SETNX and DEL", ZH: "SETNX 加 DEL"},
		Summary: api.Text{
			EN: "SETNX creates the key, DEL releases it, the others try again every 100 ms; it never expires.",
			ZH: "SETNX 成功的请求持有锁，DEL 释放，其他请求每 100 毫秒重试；键永不过期。",
		},
		When: api.Text{
			EN: "Not for production: if the holder dies, the key stays locked for ever. Use `redis` instead.",
			ZH: "不要用于生产环境：持有者崩溃后，锁永远不会释放。请改用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Overrun, api.Pause, api.ClockJump},
		Breaks: []api.Break{
			{Hazard: api.Crash, Why: api.Text{
				EN: "The key of a dead holder stays for ever, and all others wait.",
				ZH: "持有者死后键永远留着，其他请求一直等。",
			}},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "A SETNX whose answer is lost may have created the key; its constant value does not show its owner, so it is never deleted.",
				ZH: "SETNX 的应答丢了，键可能已建；固定的值不标明持有者，键永远不会被删除。",
			}},
		},
		Tutorial: []api.Figure{{Throughput: 47.8, MedianMS: 25, Remaining: 0}},
	}, api.Nesting, api.Polling, api.Failover, api.Operator)
}
