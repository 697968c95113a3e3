package zklock

import (
	"time"

	"oversell/api"
	"oversell/locks"
)

// CohortZK is the lock of ZK, but a replica passes it on to its own waiters first (locks.Cohort).
// CohortZK, ZK and Curator's mutex use the same nodes, so they exclude each other.
func CohortZK(s *Session) locks.Locker {
	shared := &zkLock{session: s, root: root}
	return locks.Reentrant(locks.Cohort(cohortZKCard(), shared, locks.Bounds{Holders: 128, Time: 100 * time.Millisecond}))
}

func cohortZKCard() api.Card {
	card := (*zkLock)(nil).Card()
	card.ID, card.Core, card.Fair, card.Tutorial = "cohort-zk", false, false, nil
	card.Source = "Dice, Marathe and Shavit: Lock Cohorting, PPoPP 2012"
	card.Title = api.Text{EN: "zk, passed on within a replica", ZH: "zk 锁在副本内接力"}
	card.Summary = api.Text{
		EN: "A replica that holds the zk lock passes it to its own next waiter, at most 128 times or for 100 ms, before another replica has its turn. The order of arrival is kept within a replica only.",
		ZH: "拿到 zk 锁的副本先在自己的等待者之间接力，最多 128 次或 100 毫秒，再让给别的副本；只在副本内先来先得。",
	}
	card.When = api.Text{
		EN: "Choose it instead of `zk` if many requests of each replica wait for the same key, and need no order of arrival over all replicas.",
		ZH: "每个副本都有许多请求在等同一把锁，又不要求跨副本先来先得时，用它代替 `zk`。",
	}
	return card
}
