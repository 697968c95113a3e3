package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// peers returns loops with the locks of other libraries, used as their documentation shows. They
// have the same lease as our locks, and enough attempts to get the lock.
func peers() map[string]loop {
	return map[string]loop{
		serial: func(_ context.Context, l lab) (deduct, func(), error) {
			var mutex sync.Mutex
			return with(l, func(ctx context.Context, db *sql.DB) error {
				mutex.Lock()
				defer mutex.Unlock()
				return sell(ctx, db, plainRead, nil)
			}, func() {})
		},
		update: updateAlone,
		unguarded: func(_ context.Context, l lab) (deduct, func(), error) {
			return with(l, func(ctx context.Context, db *sql.DB) error { return sell(ctx, db, plainRead, nil) }, func() {})
		},
		"redsync, 1 node":      func(_ context.Context, l lab) (deduct, func(), error) { return redsyncOn(l, l.Redis[:1]) },
		"redsync, 5 nodes":     func(_ context.Context, l lab) (deduct, func(), error) { return redsyncOn(l, l.Redis) },
		"bsm/redislock, 1 ms":  bsm(time.Millisecond),
		"bsm/redislock, 50 ms": bsm(50 * time.Millisecond),
		"rueidislock":          rueidisLock,
		"go-zookeeper Lock":    zooKeeperLock,
		"concurrency.Mutex":    concurrencyMutex,
	}
}

// with connects to MySQL, and returns a deduct that calls sellOne.
func with(l lab, sellOne func(context.Context, *sql.DB) error, end func()) (deduct, func(), error) {
	db, err := open(l.MySQL)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error { return sellOne(ctx, db) }, func() { end(); _ = db.Close() }, nil
}

// many is more attempts to get a lock than a client needs in a measurement.
const many = 1_000_000

func redsyncOn(l lab, urls []string) (deduct, func(), error) {
	clients, err := dial(urls)
	if err != nil {
		return nil, nil, err
	}
	var pools []pool.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	sync := redsync.New(pools...)
	return with(l, func(ctx context.Context, db *sql.DB) error {
		m := sync.NewMutex("bench", redsync.WithExpiry(lease), redsync.WithTries(many))
		if err := m.LockContext(ctx); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return sellAnd(ctx, db, func() error {
			_, err := m.UnlockContext(ctx)
			return err
		})
	}, func() { hangUp(clients) })
}

func bsm(every time.Duration) loop {
	return func(_ context.Context, l lab) (deduct, func(), error) {
		clients, err := dial(l.Redis[:1])
		if err != nil {
			return nil, nil, err
		}
		locker := redislock.New(clients[0])
		return with(l, func(ctx context.Context, db *sql.DB) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			lock, err := locker.Obtain(ctx, "bench", lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(every)})
			if err != nil {
				return fmt.Errorf("obtain: %w", err)
			}
			return sellAnd(ctx, db, func() error { return lock.Release(ctx) })
		}, func() { hangUp(clients) })
	}
}

// rueidisLock learns of a release by the invalidation messages of client-side caching.
func rueidisLock(_ context.Context, l lab) (deduct, func(), error) {
	options, err := redis.ParseURL(l.Redis[0])
	if err != nil {
		return nil, nil, err
	}
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{options.Addr}, Username: options.Username, Password: options.Password},
		KeyMajority:  1, KeyValidity: lease, NoLoopTracking: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return with(l, func(ctx context.Context, db *sql.DB) error {
		held, unlock, err := locker.WithContext(ctx, "bench")
		if err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return sellAnd(held, db, func() error { unlock(); return nil })
	}, locker.Close)
}

// zooKeeperLock creates a new Lock for each sale, because clients must not share a Lock.
func zooKeeperLock(_ context.Context, l lab) (deduct, func(), error) {
	conn, _, err := zk.Connect(l.ZooKeeper, session, zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	return with(l, func(ctx context.Context, db *sql.DB) error {
		lock := zk.NewLock(conn, "/bench-peer", zk.WorldACL(zk.PermAll))
		if err := lock.Lock(); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return sellAnd(ctx, db, lock.Unlock)
	}, conn.Close)
}

// concurrencyMutex gives each client its own session. Clients that share a session would also share
// its key in the queue, and so the lock.
func concurrencyMutex(_ context.Context, l lab) (deduct, func(), error) {
	client, err := etcd.New(etcd.Config{Endpoints: l.Etcd, Logger: zap.NewNop()})
	if err != nil {
		return nil, nil, err
	}
	idle := make(chan *concurrency.Session, 1000)
	return with(l, func(ctx context.Context, db *sql.DB) error {
		var own *concurrency.Session
		select {
		case own = <-idle:
		default:
			var err error
			if own, err = concurrency.NewSession(client, concurrency.WithTTL(int(lease.Seconds()))); err != nil {
				return fmt.Errorf("session: %w", err)
			}
		}
		defer func() { idle <- own }()
		lock := concurrency.NewMutex(own, "/bench-peer")
		if err := lock.Lock(ctx); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		return sellAnd(ctx, db, func() error { return lock.Unlock(ctx) })
	}, func() { _ = client.Close() })
}

func dial(urls []string) (clients []*redis.Client, err error) {
	for _, url := range urls {
		options, bad := redis.ParseURL(url)
		if bad != nil {
			return nil, errors.Join(err, bad)
		}
		options.PoolSize = connections
		clients = append(clients, redis.NewClient(options))
	}
	return clients, nil
}

func hangUp(clients []*redis.Client) {
	for _, client := range clients {
		_ = client.Close()
	}
}
