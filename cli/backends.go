package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"gorm.io/gorm"

	"oversell/handlers"
	"oversell/locks/catalog"
	"oversell/locks/etcdlock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/migrations"
	"oversell/stock"
)

// clients has the connections of a replica to its backends. Each connection opens at its first use.
type clients struct {
	catalog.Backends
	reads  *sql.DB               // of a follower that serves reads of the stock, or nil
	resets *gorm.DB              // of the same database, for resets of the stock
	byHand *gorm.DB              // of the same database, for locks by hand: some keep a connection until the unlock
	schema atomic.Pointer[error] // why the schema cannot be used; nil once it is up to date
}

func openBackends(s settings) (*clients, error) {
	dsn, err := s.mysqlDSN(s.MySQL)
	zkAccess, err1 := s.zooKeeperAccess()
	etcdAccess, err2 := s.etcdAccess()
	if err := cmp.Or(err, err1, err2); err != nil {
		return nil, err
	}
	db, err1 := stock.Open(dsn, s.Conns)
	resets, err2 := stock.OpenForResets(dsn)
	byHand, err6 := stock.Open(dsn, max(2, s.Conns/2))
	single, err3 := redislock.Open(s.Redis, s.Conns)
	session, err4 := zklock.Open(s.ZooKeeper, s.ZKSession, zkAccess)
	members, err5 := etcdlock.Open(s.Etcd, etcdAccess)
	if err := cmp.Or(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	outdated := errors.New("reachable, but the schema is not up to date yet")
	c := &clients{resets: resets, byHand: byHand, Backends: catalog.Backends{
		DB: db, Redis: single, ZooKeeper: session, Etcd: members, Lease: s.Lease,
		Namespace: s.Namespace, Shop: &stock.Shop{DB: db, Namespace: s.Namespace},
	}}
	c.schema.Store(&outdated)
	for _, url := range s.Redlock {
		master, err := redislock.Open(url, s.Conns)
		if err != nil {
			return nil, err
		}
		c.Redlock = append(c.Redlock, master)
	}
	if s.Reads == "" {
		return c, nil
	}
	reads, err := s.mysqlDSN(s.Reads)
	if err != nil {
		return nil, err
	}
	c.reads, err = stock.ReadAt(db, reads, s.Conns)
	return c, err
}

func (c *clients) close() {
	c.Close()
	for _, db := range []*gorm.DB{c.resets, c.byHand} {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	}
	if c.reads != nil {
		_ = c.reads.Close()
	}
}

// migrate brings the schema up to date, which the other strategies wait for.
func (c *clients) migrate(ctx context.Context) error {
	pool, err := c.DB.DB()
	if err == nil {
		err = pool.PingContext(ctx)
	}
	if err == nil {
		err = migrations.Up(ctx, pool)
	}
	if err == nil {
		c.schema.Store(nil)
		// Open a connection for resets now: later, sales may use all those that the server accepts.
		if spare, e := c.resets.DB(); e == nil {
			_ = spare.PingContext(ctx)
		}
	} else if errors.Is(err, migrations.ErrForeign) {
		c.schema.Store(&err)
	}
	return explain("mysql", err)
}

// unfit returns migrations.ErrForeign if a table is not ours. A schema that is only old will be up to date soon.
func (c *clients) unfit() error {
	if why := c.schema.Load(); why != nil && errors.Is(*why, migrations.ErrForeign) {
		return *why
	}
	return nil
}

func (c *clients) pings() []handlers.Backend {
	backends := []handlers.Backend{
		{Name: "mysql", Ping: func(ctx context.Context) error {
			pool, err := c.DB.DB()
			if err != nil {
				return err
			}
			if err := pool.PingContext(ctx); err != nil {
				return err
			}
			if why := c.schema.Load(); why != nil {
				return *why
			}
			// A write that finds no row, because a server that is read-only answers a ping.
			_, err = pool.ExecContext(ctx, "UPDATE db_stock SET count = count WHERE id = 0")
			return err
		}},
		{
			Name: "redis", Ping: func(ctx context.Context) error { return redislock.Ping(ctx, c.Redis) },
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
	for i, b := range backends {
		backends[i].Ping = func(ctx context.Context) error { return explain(b.Name, b.Ping(ctx)) }
	}
	return backends
}

// pingMajority returns nil if a majority of the Redis masters answers. Redlock needs a majority.
func (c *clients) pingMajority(ctx context.Context) error {
	answers := make(chan error, len(c.Redlock))
	for _, master := range c.Redlock {
		go func() { answers <- redislock.PingMaster(ctx, master) }()
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
