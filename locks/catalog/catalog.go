// Package catalog lists all strategies. A new strategy must be added to the function Strategies.
package catalog

import (
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/etcdlock"
	"oversell/locks/local"
	"oversell/locks/mysqllock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/stock"
)

// Backends has the strategies' clients. An unreachable server only causes stock.Unavailable.
type Backends struct {
	DB        *gorm.DB
	Redis     redis.UniversalClient
	Redlock   []redis.UniversalClient // independent masters
	ZooKeeper *zklock.Session
	Etcd      *clientv3.Client
	// Lease is the default lease, for requests that name no lease.
	Lease time.Duration
}

// Strategies returns all strategies in the order in which they are taught.
func Strategies(b Backends) []locks.Strategy {
	ledger := stock.NewLedger(b.DB)
	guard := func(l locks.Locker) locks.Strategy { return locks.Guard(l, ledger) }
	return []locks.Strategy{
		local.None(ledger),
		guard(local.Mutex()),
		local.MutexInTx(b.DB),
		mysqllock.ForUpdate(b.DB),
		mysqllock.ShareMode(b.DB),
		mysqllock.VersionNaive(b.DB),
		mysqllock.Version(b.DB),
		mysqllock.VersionAdmitted(b.DB),
		guard(mysqllock.DBRowNaive(b.DB)),
		mysqllock.DBRowRecursive(b.DB),
		guard(mysqllock.DBRowCleaned(b.DB, b.Lease)),
		guard(mysqllock.DBRow(b.DB, b.Lease)),
		guard(mysqllock.DBRowFair(b.DB, b.Lease)),
		guard(mysqllock.GetLock(b.DB)),
		guard(redislock.SetNX(b.Redis)),
		guard(redislock.SetNXExpire(b.Redis, b.Lease)),
		guard(redislock.GetSet(b.Redis, b.Lease)),
		guard(redislock.Expire(b.Redis, b.Lease)),
		guard(redislock.UUID(b.Redis, b.Lease)),
		guard(redislock.ThreadID(b.Redis, b.Lease)),
		guard(redislock.Lua(b.Redis, b.Lease)),
		guard(redislock.ReentrantLock(b.Redis, b.Lease)),
		guard(redislock.Watchdog(b.Redis, b.Lease)),
		guard(redislock.Unrecovered(b.Redis, b.Lease)),
		guard(redislock.Redis(b.Redis, b.Lease)),
		guard(redislock.Fair(b.Redis, b.Lease)),
		guard(redislock.Multi(b.Redis, b.Lease)),
		guard(redislock.MultiServers(b.Redlock, b.Lease)),
		guard(redislock.Redlock(b.Redlock, b.Lease)),
		redislock.Watch(b.Redis, ledger),
		guard(zklock.Ephemeral(b.ZooKeeper)),
		guard(zklock.EphemeralWatch(b.ZooKeeper)),
		guard(zklock.Sequential(b.ZooKeeper)),
		guard(zklock.NodeZero(b.ZooKeeper)),
		guard(zklock.WatchNaive(b.ZooKeeper)),
		guard(zklock.TimeoutGrant(b.ZooKeeper)),
		guard(zklock.ZK(b.ZooKeeper)),
		guard(zklock.Mutex(b.ZooKeeper)),
		guard(zklock.Multi(b.ZooKeeper)),
		guard(etcdlock.Etcd(b.Etcd, b.Lease)),
		guard(redislock.CohortRedis(b.Redis, b.Lease)),
		guard(redislock.CohortRedlock(b.Redlock, b.Lease)),
		guard(zklock.CohortZK(b.ZooKeeper)),
		mysqllock.Atomic(b.DB),
		mysqllock.SkipLocked(b.DB),
		mysqllock.Buckets(b.DB),
		mysqllock.Reservation(b.DB, b.Lease),
		mysqllock.Combining(b.DB),
		redislock.Stock(b.Redis, b.DB),
	}
}

// Strategy returns the strategy with this id, and false if there is none.
func Strategy(id string, b Backends) (locks.Strategy, bool) {
	for _, s := range Strategies(b) {
		if s.Card().ID == id {
			return s, true
		}
	}
	return nil, false
}

// Cards returns the cards (descriptions with claims) of all strategies. It needs no backend.
func Cards() []api.Card {
	var all []api.Card
	for _, s := range Strategies(Backends{}) {
		all = append(all, s.Card())
	}
	return all
}

// Primitives returns the synchronization primitives of Redis and ZooKeeper other than locks.
func Primitives(b Backends) []locks.Primitives {
	return []locks.Primitives{redislock.Primitives(b.Redis, b.Lease), zklock.Primitives(b.ZooKeeper)}
}

// Lockers returns locks for data other than the stock, by card ID. No strategy queues with them.
func Lockers(b Backends) map[string]locks.Locker {
	return byID(local.Mutex(), redislock.RedisOnce(b.Redis, b.Lease))
}

// ByHand returns the locks that requests can acquire and release by hand, by card ID.
func ByHand(b Backends) map[string]locks.Locker {
	return byID(
		mysqllock.DBRow(b.DB, b.Lease),
		redislock.Expire(b.Redis, b.Lease),
		redislock.Lua(b.Redis, b.Lease),
		redislock.ReentrantLock(b.Redis, b.Lease),
		redislock.Watchdog(b.Redis, b.Lease),
		redislock.Redis(b.Redis, b.Lease),
		redislock.Fair(b.Redis, b.Lease),
		redislock.Multi(b.Redis, b.Lease),
		redislock.Redlock(b.Redlock, b.Lease),
		zklock.ZK(b.ZooKeeper),
		zklock.Mutex(b.ZooKeeper),
		etcdlock.Etcd(b.Etcd, b.Lease),
	)
}

func byID(all ...locks.Locker) map[string]locks.Locker {
	lockers := map[string]locks.Locker{}
	for _, l := range all {
		lockers[l.Card().ID] = l
	}
	return lockers
}
