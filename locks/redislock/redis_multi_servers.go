package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// MultiServers locks the same product on several independent Redis, all or none (tutorial 3.9.3).
// Redisson's MultiLock joins locks of several Redisson instances like this. Redlock needs only a
// majority of the servers.
func MultiServers(nodes []redis.UniversalClient, lease time.Duration) locks.Locker {
	var servers multiServers
	for _, node := range nodes {
		servers = append(servers, Redis(node, lease))
	}
	return locks.Multi(servers.Card(), servers, servers.keys)
}

// multiServers has a lock on each server. It passes a request to the server that the key names.
type multiServers []locks.Locker

const multiServersKey = "redis-multi-servers:%d:" // the number of the server; the product's key follows

// keys returns the key for each server. Their order is fixed, or two requests could each hold some
// of the servers, and wait for each other.
func (s multiServers) keys(key string) (all []string) {
	for i := range s {
		all = append(all, fmt.Sprintf(multiServersKey, i)+key)
	}
	return all
}

func (s multiServers) server(key string) locks.Locker {
	var number int
	if _, err := fmt.Sscanf(key, multiServersKey, &number); err != nil {
		panic(err) // keys has made this key
	}
	return s[number]
}

func (s multiServers) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, err := s.server(r.Key).Acquire(ctx, r)
	if errors.Is(err, stock.ErrUnavailable) {
		return nil, &stock.Unavailable{Backend: "redlock", Err: err} // one of the servers of Redlock
	}
	return lock, err
}

func (s multiServers) Clear(ctx context.Context, key string) error {
	if c, ok := s.server(key).(locks.Cleaner); ok {
		return c.Clear(ctx, key)
	}
	return nil
}

func (multiServers) Card() api.Card {
	return card(api.Card{
		ID: "redis-multi-servers", Aside: true, Source: "3.9.3", SeveralLocks: true, Backends: []string{"mysql", "redlock"},
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "Several Redis together", ZH: "多个 Redis 联锁（MultiLock）"},
		Summary: api.Text{
			EN: "A sale locks its product on each of five independent Redis, all or none; it loses them all when one is lost.",
			ZH: "一次销售在五个独立的 Redis 上都加锁，要么全锁要么全不锁；丢了一把就算全丢。",
		},
		When: api.Text{
			EN: "Not for production: if one of the five servers is down, no request gets the lock. Use `redlock`, which needs only a majority.",
			ZH: "不要用于生产环境：五个节点只要有一个宕机，就谁也拿不到锁。请改用只需要多数节点的 `redlock`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Cutoff, api.LostReply, api.Nesting,
			api.Failover, api.Herd, api.Deadlock, api.Operator, api.Starved, api.RenewalReply,
		},
		Breaks: []api.Break{
			{Hazard: api.MinorityLoss, Why: api.Text{
				EN: "Every server must grant the lock: if one of them is dead, nothing is sold. Redlock needs only a majority.",
				ZH: "每个节点都必须加锁成功：一个节点宕机，就什么都卖不了；红锁只需要多数。",
			}},
			{Hazard: api.Pause},
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "When the clocks of all servers jump, the keys expire early.",
				ZH: "所有节点的时钟一跳，键就提前消失。",
			}},
		},
	})
}
