package redislock

import (
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// Multi locks a product and its warehouse, both or none (tutorial 3.9.3, Redisson's MultiLock).
func Multi(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Multi(multiCard(), Redis(c, lease), productAndWarehouse)
}

// productAndWarehouse returns both keys, with a prefix that the strategy redis does not use.
func productAndWarehouse(key string) []string {
	product := "redis-multi:" + key
	return []string{product, product + ":warehouse"}
}

func multiCard() api.Card {
	return card(api.Card{
		ID: "redis-multi", Source: "3.9.3", SeveralLocks: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "Redis, several keys together", ZH: "Redis 联锁（MultiLock）"},
		Summary: api.Text{
			EN: "A sale locks its product and the warehouse, both or none, always in the same order, and loses both when one is lost.",
			ZH: "一次销售同时锁住商品和仓库，要么全锁要么全不锁，顺序固定；丢了一把就算全丢。",
		},
		When: api.Text{
			EN: "Choose it if one operation must lock several things together, such as a product and its warehouse, and one Redis has all the locks.",
			ZH: "一次操作要同时锁住几样东西（例如商品和仓库），而锁都在同一个 Redis 上时选它。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Cutoff, api.LostReply, api.Nesting,
			api.Herd, api.Deadlock, api.Operator, api.Starved, api.RenewalReply,
		},
		Breaks: []api.Break{
			{Hazard: api.Failover, Why: api.Text{
				EN: "Replication is asynchronous: the new master may lack one of the locks, or both.",
				ZH: "主从复制是异步的，新主可能缺其中一把锁，甚至全都没有。",
			}},
			{Hazard: api.Pause},
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "The leases run on Redis's clock: when that jumps, the keys expire early.",
				ZH: "租期按 Redis 的时钟走，时钟一跳，键就提前消失。",
			}},
		},
	})
}
