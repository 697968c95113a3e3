package redislock

import (
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

// CohortRedlock is the lock Redlock with lock cohorting: a replica that holds the lock passes it to
// its own waiters, for a limited time and number of holders. The masters send no message when the
// lock is free, so these limits are higher than in CohortRedis. A replica that has reached a limit
// pauses for longestRetry. In this time, each waiter of another replica tries at least once.
func CohortRedlock(nodes []redis.UniversalClient, lease time.Duration) locks.Locker {
	bounds := locks.Bounds{Holders: 200, Time: 100 * time.Millisecond, Yield: longestRetry}
	return locks.Reentrant(locks.Cohort(cohortRedlockCard(), newRedlock(nodes, lease), bounds))
}

func cohortRedlockCard() api.Card {
	card := (*redlock)(nil).Card()
	card.ID, card.Core, card.Aside, card.Tutorial = "cohort-redlock", false, true, nil
	card.Source = "Dice, Marathe and Shavit: Lock Cohorting, PPoPP 2012"
	card.Title = api.Text{EN: "redlock, passed on within a replica", ZH: "红锁在副本内接力"}
	card.Summary = api.Text{
		EN: "A replica that holds redlock passes it to its own next waiter, at most 200 times or for 100 ms, before another replica has its turn.",
		ZH: "拿到红锁的副本先在自己的等待者之间接力，最多 200 次或 100 毫秒，再让给别的副本。",
	}
	card.When = api.Text{
		EN: "Choose it instead of `redlock` if many requests of each replica wait for the same key: most grants without a fence then need no request to the masters.",
		ZH: "每个副本都有许多请求在等同一把锁时，用它代替 `redlock`：不带栅栏号时，多数加锁不必再访问 Redis 节点。",
	}
	return card
}
