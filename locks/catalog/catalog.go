// Package catalog is the one list of strategies. A new one is a file in its
// family and a line here, and nothing else.
package catalog

import (
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/locks"
	"oversell/locks/local"
	"oversell/locks/mysqllock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/stock"
)

// Backends are what the strategies work with. None of them need be reachable:
// each strategy says so itself when it can't reach what it needs.
type Backends struct {
	DB        *gorm.DB
	Redis     redis.UniversalClient
	Redlock   []redis.UniversalClient // independent masters
	ZooKeeper *zklock.Session
	// Lease is the life of a grant where a request names none.
	Lease time.Duration
}

// Strategies lists them in the order of the ladder.
func Strategies(b Backends) []locks.Strategy {
	ledger := stock.NewLedger(b.DB)
	return []locks.Strategy{
		local.None(ledger),
		locks.Guard(local.Mutex(), ledger),
		mysqllock.ForUpdate(b.DB),
		mysqllock.Version(b.DB),
		locks.Guard(mysqllock.DBRow(b.DB, b.Lease), ledger),
		locks.Guard(redislock.Redis(b.Redis, b.Lease), ledger),
		locks.Guard(redislock.Redlock(b.Redlock, b.Lease), ledger),
		locks.Guard(zklock.ZK(b.ZooKeeper), ledger),
	}
}
