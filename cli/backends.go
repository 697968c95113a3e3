package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/handlers"
	"oversell/locks/catalog"
	"oversell/locks/etcdlock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/stock"
)

// clients are the clients of a replica's backends. They connect at the first use.
type clients struct {
	catalog.Backends
	reads    *sql.DB  // of a follower for reading the stock, or nil
	resets   *gorm.DB // of the same database, for setting the stock
	migrated atomic.Bool
}

func openBackends(s settings) (*clients, error) {
	db, err := stock.Open(s.MySQL, s.Conns)
	if err != nil {
		return nil, err
	}
	resets, err := stock.OpenForResets(s.MySQL)
	if err != nil {
		return nil, err
	}
	var reads *sql.DB
	if s.Reads != "" {
		if reads, err = stock.ReadAt(db, s.Reads, s.Conns); err != nil {
			return nil, err
		}
	}
	single, err := redislock.Open(s.Redis, s.Conns)
	if err != nil {
		return nil, err
	}
	var masters []redis.UniversalClient
	for _, url := range s.Redlock {
		master, err := redislock.Open(url, s.Conns)
		if err != nil {
			return nil, err
		}
		masters = append(masters, master)
	}
	session, err := zklock.Open(s.ZooKeeper, s.ZKSession)
	if err != nil {
		return nil, err
	}
	members, err := etcdlock.Open(s.Etcd)
	if err != nil {
		return nil, err
	}
	return &clients{reads: reads, resets: resets, Backends: catalog.Backends{
		DB: db, Redis: single, Redlock: masters, ZooKeeper: session, Etcd: members, Lease: s.Lease,
	}}, nil
}

func (c *clients) close() {
	c.ZooKeeper.Close()
	_ = c.Etcd.Close()
	for _, client := range append(c.Redlock, c.Redis) {
		_ = client.Close()
	}
	for _, db := range []*gorm.DB{c.DB, c.resets} {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	}
	if c.reads != nil {
		_ = c.reads.Close()
	}
}

// pings returns a health check for each backend.
func (c *clients) pings() []handlers.Backend {
	backends := []handlers.Backend{
		{Name: "mysql", Ping: func(ctx context.Context) error {
			pool, err := c.DB.DB()
			if err != nil {
				return err
			}
			if err := pool.PingContext(ctx); err != nil || c.migrated.Load() {
				return err
			}
			return errors.New("reachable, but the schema is not up to date yet")
		}},
		{
			Name: "redis", Ping: func(ctx context.Context) error { return c.Redis.Ping(ctx).Err() },
			Flushes: func(ctx context.Context) (int64, error) { return redislock.Flushes(ctx, c.Redis) },
		},
		{
			Name: "redlock", Ping: c.pingMajority,
			Flushes: func(ctx context.Context) (int64, error) { return redislock.Flushes(ctx, c.Redlock...) },
		},
		{Name: "zookeeper", Ping: c.ZooKeeper.Ping},
		{Name: "etcd", Ping: func(ctx context.Context) error { return etcdlock.Ping(ctx, c.Etcd) }},
	}
	if c.reads != nil {
		backends = append(backends, handlers.Backend{Name: "mysql-reads", Ping: c.reads.PingContext})
	}
	return backends
}

// pingMajority returns nil if a majority of the masters answers, as Redlock needs.
func (c *clients) pingMajority(ctx context.Context) error {
	answers := make(chan error, len(c.Redlock))
	for _, master := range c.Redlock {
		go func() { answers <- master.Ping(ctx).Err() }()
	}
	var down []error
	for range c.Redlock {
		if err := <-answers; err != nil {
			down = append(down, err)
		}
	}
	if len(down) > (len(c.Redlock)-1)/2 {
		return fmt.Errorf("%d of %d masters are unavailable: %w", len(down), len(c.Redlock), errors.Join(down...))
	}
	return nil
}
