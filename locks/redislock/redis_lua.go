package redislock

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

//go:embed redis_lua_release.lua
var luaReleaseLua string

// Lua compares the value and deletes the key in one atomic script (tutorial 3.4, 3.5; 001, 004).
// The client sends the script's hash (EVALSHA), or its text if Redis has not stored the script.
func Lua(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisLua{polledLock{c, "redis-lua:", lease}, redis.NewScript(luaReleaseLua)}
}

type redisLua struct {
	polledLock
	release *redis.Script
}

func (l *redisLua) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	token := locks.Token(r.Owner)
	release := func(ctx context.Context) error { return run(ctx, l.client, l.release, []string{lock}, token) }
	return attempt{
		take:  func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, token, lease).Result() },
		pause: 50 * time.Millisecond,
		unsure: func(ctx context.Context) error { // the token shows whether the key is ours
			return locks.GiveBack(ctx, time.Time{}, release)
		},
		// DANGER: the lease is not renewed, and the Grant has no Lease, so this holder does not notice
		// the end of its lease. It then works at the same time as the next holder.
		grant: locks.Grant{Release: release, Again: release},
	}.acquire(ctx, r)
}

func (*redisLua) Card() api.Card {
	return card(api.Card{
		ID: "redis-lua", Source: "3.4, 3.5; 001, 004", Lease: true, LeasePerRequest: true, Unchecked: true, Slow: true,
		Title: api.Text{EN: "A random value, released by a script", ZH: "Lua 脚本保证删除原子性"},
		Summary: api.Text{
			EN: "The value is random; one script compares it and deletes the key, so no release frees another holder's lock.",
			ZH: "值是随机的 UUID，一段 Lua 脚本比较并删除，不会误删其他持有者的锁。",
		},
		When: api.Text{
			EN: "Choose it for short work that may rarely run twice, such as refilling a cache, if the code must be small. Otherwise use `redis`.",
			ZH: "业务很短、偶尔执行两次也无妨（例如重建缓存），又想让代码尽量少时选它。否则用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.ForeignUnlock, api.LostReply},
		Tutorial: []api.Figure{{Throughput: 49.7, MedianMS: 29, Remaining: 0}},
	}, api.Overrun, api.Cutoff, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
