package redislock

import (
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// CohortRedis is the lock Redis with lock cohorting: a replica that holds the lock passes it to its
// own waiters, for a limited time and number of holders. CohortRedis and Redis use the same keys.
func CohortRedis(c redis.UniversalClient, lease time.Duration) locks.Locker {
	// A replica that has reached a limit pauses for Yield. Otherwise its own next waiter would
	// acquire the lock before other replicas receive the message of the release.
	bounds := locks.Bounds{Holders: 64, Time: 50 * time.Millisecond, Yield: 5 * time.Millisecond}
	return locks.Reentrant(locks.Cohort(cohortRedisCard(), newRedisLock(c, lease), bounds))
}

func cohortRedisCard() api.Card {
	card := (*redisLock)(nil).Card()
	card.ID, card.Core, card.Tutorial = "cohort-redis", false, nil
	card.Source = "Dice, Marathe and Shavit: Lock Cohorting, PPoPP 2012"
	card.Title = api.Text{EN: "redis, passed on within a replica", ZH: "redis 锁在副本内接力"}
	card.Summary = api.Text{
		EN: "A replica that holds the redis lock passes it to its own next waiter, at most 64 times or for 50 ms, before another replica has its turn.",
		ZH: "拿到 redis 锁的副本先在自己的等待者之间接力，最多 64 次或 50 毫秒，再让给别的副本。",
	}
	card.When = api.Text{
		EN: "Choose it instead of `redis` if many requests of each replica wait for the same key: most grants without a fence then need no request to Redis.",
		ZH: "每个副本都有许多请求在等同一把锁时，用它代替 `redis`：不带栅栏号时，多数加锁不必再访问 Redis。",
	}
	return card
}
