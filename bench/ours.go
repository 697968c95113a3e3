package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/locks"
	"oversell/locks/etcdlock"
	"oversell/locks/mysqllock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/stock"
)

// These settings are the same as those of a replica.
const (
	connections = 32
	lease       = 10 * time.Second
	session     = 10 * time.Second
)

// ours returns loops with the locks of this repository, without the service.
func ours() map[string]loop {
	return map[string]loop{
		"redis": single(redislock.Redis), "cohort-redis": single(redislock.CohortRedis),
		"redlock": masters(redislock.Redlock), "cohort-redlock": masters(redislock.CohortRedlock),
		"etcd": members,
		"zk":   ensemble(zklock.ZK), "cohort-zk": ensemble(zklock.CohortZK),
		"db-row":   inMySQL(func(db *gorm.DB) locks.Locker { return mysqllock.DBRow(db, lease) }),
		"get-lock": inMySQL(mysqllock.GetLock),
	}
}

func inMySQL(lock func(*gorm.DB) locks.Locker) loop {
	return func(_ context.Context, l lab) (deduct, func(), error) {
		db, err := stock.Open(l.MySQL, connections)
		if err != nil {
			return nil, nil, err
		}
		return under(l, lock(db), func() {})
	}
}

func single(lock func(redis.UniversalClient, time.Duration) locks.Locker) loop {
	return func(_ context.Context, l lab) (deduct, func(), error) {
		client, err := redislock.Open(l.Redis[0], connections)
		if err != nil {
			return nil, nil, err
		}
		return under(l, lock(client, lease), func() { _ = client.Close() })
	}
}

func masters(lock func([]redis.UniversalClient, time.Duration) locks.Locker) loop {
	return func(_ context.Context, l lab) (deduct, func(), error) {
		var clients []redis.UniversalClient
		for _, url := range l.Redis {
			client, err := redislock.Open(url, connections)
			if err != nil {
				return nil, nil, err
			}
			clients = append(clients, client)
		}
		return under(l, lock(clients, lease), func() {
			for _, client := range clients {
				_ = client.Close()
			}
		})
	}
}

func ensemble(lock func(*zklock.Session) locks.Locker) loop {
	return func(_ context.Context, l lab) (deduct, func(), error) {
		s, err := zklock.Open(l.ZooKeeper, session)
		if err != nil {
			return nil, nil, err
		}
		return under(l, lock(s), s.Close)
	}
}

func members(_ context.Context, l lab) (deduct, func(), error) {
	client, err := etcdlock.Open(l.Etcd)
	if err != nil {
		return nil, nil, err
	}
	return under(l, etcdlock.Etcd(client, lease), func() { _ = client.Close() })
}

// under sells one item under the lock. Like the service, deduct verifies the lock before the write.
func under(l lab, lock locks.Locker, end func()) (deduct, func(), error) {
	return with(l, func(ctx context.Context, db *sql.DB) error {
		h, err := lock.Acquire(ctx, locks.Request{Key: "bench", Owner: uuid.NewString(), Wait: time.Minute})
		if err != nil {
			return fmt.Errorf("acquire: %w", err)
		}
		err = sell(h.Context(), db, plainRead, h.Verify)
		if freed := h.Release(ctx); err == nil && freed != nil {
			return fmt.Errorf("release: %w", freed)
		}
		return err
	}, end)
}

// sellAnd sells one item and then calls unlock, even after an error.
func sellAnd(ctx context.Context, db *sql.DB, unlock func() error) error {
	err := sell(ctx, db, plainRead, nil)
	if freed := unlock(); err == nil && freed != nil {
		return fmt.Errorf("release: %w", freed)
	}
	return err
}
