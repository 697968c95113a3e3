package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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

	"oversell/api"
	"oversell/lab/rig"
	"oversell/locks"
	"oversell/trial/adapter"
)

// peer connects to the servers. It returns a lock of another library, and a function that ends it.
type peer func(rig.Addresses) (lock locks.Locker, end func(), err error)

// acquire acquires the lock of another library, and returns its release.
type acquire func(ctx context.Context, key string) (release func(context.Context) error, err error)

// Card returns an empty card: the lock is no strategy of the service.
func (acquire) Card() api.Card { return api.Card{} }

// Acquire makes a locks.Locker of the library's lock. Some libraries have no wait of their own: a waiter of
// rueidislock that misses a wake-up would wait for ever.
func (a acquire) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	limited, cancel := context.WithTimeout(ctx, r.Wait)
	release, err := a(limited, r.Key)
	if err != nil {
		defer cancel()
		if limited.Err() != nil {
			err = locks.NotAcquired(ctx, r.Key, r.Wait)
		}
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Release: func(ctx context.Context) error {
		defer cancel() // the library may end the lock with its context
		return release(ctx)
	}}), nil
}

// peers returns the locks of other libraries, used as their documentation shows. They have the same
// lease as our locks, and enough attempts to get the lock.
func peers() map[string]peer {
	return map[string]peer{
		"redsync, 1 node":      func(at rig.Addresses) (locks.Locker, func(), error) { return redsyncOn(at.Redis[:1]) },
		"redsync, 5 nodes":     func(at rig.Addresses) (locks.Locker, func(), error) { return redsyncOn(at.Redis) },
		"bsm/redislock, 1 ms":  bsm(time.Millisecond),
		"bsm/redislock, 50 ms": bsm(50 * time.Millisecond),
		"rueidislock":          rueidisLock,
		"go-zookeeper Lock":    zooKeeperLock,
		"concurrency.Mutex":    concurrencyMutex,
		"redis" + byAdapter:    program("bin/oversell adapter redis"),
		"Redisson" + byAdapter: program(jvm + "RedissonLock lock"),
		"zk" + byAdapter:       program("bin/oversell adapter zk"),
		"Curator" + byAdapter:  program(jvm + "CuratorMutex"),
	}
}

// byAdapter ends the names of locks that are measured through their adapters.
const byAdapter = ", adapter"

const jvm = "java -XX:+UseSerialGC -cp 'bin/adapters-java/*' oversell.adapters."

// program starts the adapter of a lock. Its messages take longer than a sale, so compare only adapters.
func program(line string) peer {
	return func(at rig.Addresses) (locks.Locker, func(), error) {
		env := slices.Concat(os.Environ(), at.ServeEnv(), []string{
			fmt.Sprintf("LEASE_MS=%d", lease.Milliseconds()), fmt.Sprintf("SESSION_MS=%d", session.Milliseconds()),
		})
		lock, err := adapter.Start(context.Background(), adapter.Shell(line, "..", env), io.Discard) // a JVM logs a lot
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", line, err)
		}
		return lock, lock.Close, nil
	}
}

// many is more attempts to get a lock than a client needs in a measurement.
const many = 1_000_000

func redsyncOn(urls []string) (locks.Locker, func(), error) {
	clients, err := dial(urls)
	if err != nil {
		return nil, nil, err
	}
	var pools []pool.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	sync := redsync.New(pools...)
	return acquire(func(ctx context.Context, key string) (func(context.Context) error, error) {
		m := sync.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(many))
		return func(ctx context.Context) error {
			_, err := m.UnlockContext(ctx)
			return err
		}, m.LockContext(ctx)
	}), func() { hangUp(clients) }, nil
}

func bsm(every time.Duration) peer {
	return func(at rig.Addresses) (locks.Locker, func(), error) {
		clients, err := dial(at.Redis[:1])
		if err != nil {
			return nil, nil, err
		}
		locker := redislock.New(clients[0])
		return acquire(func(ctx context.Context, key string) (func(context.Context) error, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			lock, err := locker.Obtain(ctx, key, lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(every)})
			return lock.Release, err
		}), func() { hangUp(clients) }, nil
	}
}

// rueidisLock learns of a release by the invalidation messages of client-side caching.
func rueidisLock(at rig.Addresses) (locks.Locker, func(), error) {
	options, err := redis.ParseURL(at.Redis[0])
	if err != nil {
		return nil, nil, err
	}
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{
			InitAddress: []string{options.Addr}, Username: options.Username, Password: options.Password,
		},
		KeyMajority: 1, KeyValidity: lease, NoLoopTracking: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return acquire(func(ctx context.Context, key string) (func(context.Context) error, error) {
		_, unlock, err := locker.WithContext(ctx, key)
		return func(context.Context) error { unlock(); return nil }, err
	}), locker.Close, nil
}

// zooKeeperLock creates a new Lock for each sale, because clients must not share a Lock.
func zooKeeperLock(at rig.Addresses) (locks.Locker, func(), error) {
	conn, _, err := zk.Connect(at.Zookeeper, session, zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	return acquire(func(_ context.Context, key string) (func(context.Context) error, error) {
		lock := zk.NewLock(conn, "/bench/"+key, zk.WorldACL(zk.PermAll))
		return func(context.Context) error { return lock.Unlock() }, lock.Lock()
	}), conn.Close, nil
}

// concurrencyMutex gives each client its own session. Clients that share a session would also share
// its key in the queue, and so the lock.
func concurrencyMutex(at rig.Addresses) (locks.Locker, func(), error) {
	client, err := etcd.New(etcd.Config{Endpoints: at.Etcd, Logger: zap.NewNop()})
	if err != nil {
		return nil, nil, err
	}
	idle := make(chan *concurrency.Session, 1000)
	return acquire(func(ctx context.Context, key string) (func(context.Context) error, error) {
		var own *concurrency.Session
		select {
		case own = <-idle:
		default:
			var err error
			if own, err = concurrency.NewSession(client, concurrency.WithTTL(int(lease.Seconds()))); err != nil {
				return nil, err
			}
		}
		lock := concurrency.NewMutex(own, "/bench/"+key)
		return func(ctx context.Context) error {
			defer func() { idle <- own }()
			return lock.Unlock(ctx)
		}, lock.Lock(ctx)
	}), func() { _ = client.Close() }, nil
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
