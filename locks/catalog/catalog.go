// Package catalog lists all strategies. A new strategy must be added to the function constructors.
package catalog

import (
	"slices"
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
	// Namespace, if set, begins the keys of all locks and primitives: other deployments use the servers, too.
	Namespace string
	// Shop names the stock of this deployment in Redis, so that two deployments may share a Redis. nil means that no other
	// one uses it.
	Shop *stock.Shop
	// Lease is the default lease, for requests that name no lease.
	Lease time.Duration
}

// Close closes the clients that are there.
func (b Backends) Close() {
	if b.ZooKeeper != nil {
		b.ZooKeeper.Close()
	}
	if b.Etcd != nil {
		_ = b.Etcd.Close()
	}
	for _, client := range append(slices.Clip(b.Redlock), b.Redis) {
		if client != nil {
			_ = client.Close()
		}
	}
	if b.DB == nil {
		return
	}
	if pool, err := b.DB.DB(); err == nil {
		_ = pool.Close()
	}
}

// Constructor builds a strategy on its backends, and connects with none of them.
type Constructor func(Backends) locks.Strategy

// constructors returns a constructor for each strategy, in the order in which they are taught.
func constructors() []Constructor {
	return []Constructor{
		func(b Backends) locks.Strategy { return local.None(b.ledger()) },
		func(b Backends) locks.Strategy { return b.guard(local.Mutex()) },
		func(b Backends) locks.Strategy { return local.MutexInTx(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.ForUpdate(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.ShareMode(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.VersionNaive(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.Version(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.VersionAdmitted(b.DB) },
		func(b Backends) locks.Strategy { return b.guard(mysqllock.DBRowNaive(b.DB)) },
		func(b Backends) locks.Strategy { return mysqllock.DBRowRecursive(b.DB) },
		func(b Backends) locks.Strategy { return b.guard(mysqllock.DBRowCleaned(b.DB, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(mysqllock.DBRow(b.DB, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(mysqllock.DBRowFair(b.DB, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(mysqllock.GetLock(b.DB)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.SetNX(b.Redis)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.SetNXExpire(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.GetSet(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Expire(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.UUID(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.ThreadID(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Lua(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.ReentrantLock(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Watchdog(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Unrecovered(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Redis(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Fair(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Multi(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.MultiServers(b.Redlock, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.Redlock(b.Redlock, b.Lease)) },
		func(b Backends) locks.Strategy { return redislock.Watch(b.Redis, b.ledger(), b.Namespace) },
		func(b Backends) locks.Strategy { return b.guard(zklock.Ephemeral(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.EphemeralWatch(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.Sequential(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.NodeZero(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.WatchNaive(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.TimeoutGrant(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.ZK(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.Mutex(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.Multi(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return b.guard(etcdlock.Etcd(b.Etcd, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.CohortRedis(b.Redis, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(redislock.CohortRedlock(b.Redlock, b.Lease)) },
		func(b Backends) locks.Strategy { return b.guard(zklock.CohortZK(b.ZooKeeper)) },
		func(b Backends) locks.Strategy { return mysqllock.Atomic(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.SkipLocked(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.Buckets(b.DB) },
		func(b Backends) locks.Strategy { return mysqllock.Reservation(b.DB, b.Lease) },
		func(b Backends) locks.Strategy { return mysqllock.Combining(b.DB) },
		func(b Backends) locks.Strategy { return redislock.Stock(b.Redis, b.DB, b.Shop) },
	}
}

func (b Backends) ledger() *stock.Ledger { return stock.NewLedger(b.DB) }

// guard makes a strategy of a lock.
func (b Backends) guard(l locks.Locker) locks.Strategy {
	return locks.Guard(locks.Within(b.Namespace, l), b.ledger())
}

// ConstructorOf returns the constructor of the strategy with this id, and false if there is none.
func ConstructorOf(id string) (Constructor, bool) {
	all := constructors()
	i := slices.IndexFunc(all, func(build Constructor) bool { return build(Backends{}).Card().ID == id })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// Strategies returns all strategies in the order in which they are taught.
func Strategies(b Backends) []locks.Strategy {
	var all []locks.Strategy
	for _, build := range constructors() {
		all = append(all, build(b))
	}
	return all
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
	return []locks.Primitives{redislock.Primitives(b.Redis, b.Namespace, b.Lease), zklock.Primitives(b.ZooKeeper, b.Namespace)}
}

// Lockers returns locks for data other than the stock, by card ID. No strategy queues with them.
func Lockers(b Backends) map[string]locks.Locker {
	return byID(local.Mutex(), locks.Within(b.Namespace, redislock.RedisOnce(b.Redis, b.Lease)))
}

// ByHand returns the locks that requests can acquire and release by hand, by card ID: all strategies that are a lock.
func ByHand(b Backends) map[string]locks.Locker {
	var all []locks.Locker
	for _, s := range Strategies(b) {
		if l, ok := s.(locks.Locker); ok {
			all = append(all, l)
		}
	}
	return byID(all...)
}

func byID(all ...locks.Locker) map[string]locks.Locker {
	lockers := map[string]locks.Locker{}
	for _, l := range all {
		lockers[l.Card().ID] = l
	}
	return lockers
}
