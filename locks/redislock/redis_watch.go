package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Watch keeps the stock in Redis and locks nothing (tutorial document 002). A sale sends WATCH for
// the count, reads it, and writes it in MULTI and EXEC. If the count was written after the WATCH,
// EXEC changes nothing, and the sale starts again. Only the first sale of a product reads the row
// in MySQL, and loads its count. No sale writes the row.
func Watch(c redis.UniversalClient, ledger *stock.Ledger, namespace string) locks.Strategy {
	return &watch{c, ledger, strings.TrimPrefix(namespace+":redis-watch:", ":")}
}

type watch struct {
	client redis.UniversalClient
	ledger *stock.Ledger
	prefix string // of the keys in Redis
}

const (
	// The mean pause between two tries begins at shortestPause, and doubles up to longestPause.
	longestPause  = 64 * time.Millisecond
	shortestPause = time.Millisecond
	// execTimeout limits the time of an EXEC, which continues even if its request is cancelled.
	execTimeout = 5 * time.Second
)

func (s *watch) name(product int64) string { return s.prefix + api.Key(product) }

func (s *watch) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began, mean := time.Now(), shortestPause
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	for {
		tried := time.Now()
		r.Waited = tried.Sub(began)
		r.Remaining, err = s.try(ctx, o)
		r.Held = time.Since(tried)
		if errors.Is(err, errNotLoaded) {
			if err := s.load(ctx, o.Product); err != nil {
				return r, err
			}
			continue
		}
		if !errors.Is(err, stock.ErrConflict) {
			return r, err
		}
		r.Retries++
		// The pause is random, so that requests which collided do not collide again.
		pause := locks.Jitter(ctx, 2*mean)
		if pause >= o.Wait-time.Since(began) {
			return r, fmt.Errorf("every attempt failed (%d in %v): %w", r.Retries, o.Wait, err)
		}
		_ = locks.Work(ctx, pause) // if ctx ends, the next try returns the error
		mean = min(2*mean, longestPause)
	}
}

var errNotLoaded = errors.New("redis has no such stock")

// try sends one WATCH, and an EXEC if enough stock is left, both on the connection of the WATCH. It
// returns ErrConflict if another client wrote the count between the two.
func (s *watch) try(ctx context.Context, o stock.Order) (remaining int, err error) {
	if ctx.Err() != nil {
		return 0, beforeExec(ctx, nil)
	}
	name := s.name(o.Product)
	sent := false
	err = s.client.Watch(ctx, func(tx *redis.Tx) error {
		if remaining, err = s.read(ctx, tx, o); err != nil {
			// Send UNWATCH even if ctx is cancelled: the connection must not keep the WATCH.
			_ = tx.Unwatch(context.WithoutCancel(ctx)).Err()
			return err
		}
		locks.Trace(ctx, api.Writing, api.Key(o.Product), o.Owner, 0)
		// The end of ctx cannot stop the EXEC any more, so wait for the answer to the EXEC.
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), execTimeout)
		defer cancel()
		sent = true
		_, err := tx.TxPipelined(free, func(p redis.Pipeliner) error {
			// DANGER: this sale is in Redis only. A Redis that loses its data loads the count
			// from the row again, and sells the same pieces once more.
			p.Set(free, name, remaining, 0)
			return nil
		})
		return err
	}, name)
	if sent {
		err = afterExec(err)
	} else {
		err = beforeExec(ctx, err)
	}
	if err == nil {
		locks.Trace(ctx, api.Written, api.Key(o.Product), o.Owner, 0)
	}
	return remaining, err
}

func (s *watch) read(ctx context.Context, tx *redis.Tx, o stock.Order) (remaining int, err error) {
	count, err := tx.Get(ctx, s.name(o.Product)).Int()
	if errors.Is(err, redis.Nil) {
		return 0, errNotLoaded
	}
	if err != nil {
		return 0, err
	}
	locks.Trace(ctx, api.Read, api.Key(o.Product), o.Owner, 0)
	if count < o.Qty {
		return count, stock.ErrSoldOut
	}
	return count - o.Qty, locks.Work(ctx, o.Work)
}

// beforeExec translates err, the error of a sale that sent no EXEC. Such a sale has taken no stock.
func beforeExec(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errNotLoaded), errors.Is(err, stock.ErrSoldOut), errors.Is(err, stock.ErrCancelled):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", stock.ErrCancelled, context.Cause(ctx))
	case errors.Is(err, redis.ErrPoolTimeout):
		return fmt.Errorf("%w: other requests use all connections to redis: %w", stock.ErrConflict, err)
	default:
		return &stock.Unavailable{Backend: "redis", Err: err}
	}
}

// afterExec translates err, the error of a sale that sent an EXEC. If Redis answered with an error,
// the count is unchanged. If no answer came, the outcome is unknown.
func afterExec(err error) error {
	var answer redis.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.TxFailedErr):
		return fmt.Errorf("%w: the count was written since it was read", stock.ErrConflict)
	case errors.As(err, &answer):
		return &stock.Unavailable{Backend: "redis", Err: err}
	default:
		return fmt.Errorf("exec in redis: %w", err)
	}
}

// load copies the count from the row, unless another client writes the count in Redis meanwhile. The WATCH comes
// before the read of the row, so that a reset, which writes the row and then the key, makes EXEC fail.
func (s *watch) load(ctx context.Context, product int64) error {
	name := s.name(product)
	err := s.client.Watch(ctx, func(tx *redis.Tx) error {
		item, err := s.ledger.ReadPrimary(ctx, product)
		if err == nil {
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.SetNX(ctx, name, item.Count, 0)
				return nil
			})
		}
		return err
	}, name)
	switch {
	case errors.Is(err, redis.TxFailedErr): // loaded or reset by another client
		return nil
	case errors.Is(err, stock.ErrUnknownProduct), errors.Is(err, stock.ErrUnavailable), errors.Is(err, stock.ErrConflict):
		return err
	case err != nil:
		return beforeExec(ctx, err)
	}
	return nil
}

func (s *watch) Count(ctx context.Context, product int64) (int, error) {
	return countOrRow(ctx, s.client.Get(ctx, s.name(product)), s.ledger, product)
}

func (s *watch) Holds(ctx context.Context, product int64) (bool, error) {
	copies, err := s.client.Exists(ctx, s.name(product)).Result()
	return copies > 0, err
}

func countOrRow(ctx context.Context, answer *redis.StringCmd, ledger *stock.Ledger, product int64) (int, error) {
	count, err := answer.Int()
	if errors.Is(err, redis.Nil) {
		item, err := ledger.Read(ctx, product)
		return item.Count, err
	}
	if err != nil {
		return 0, beforeExec(ctx, err)
	}
	return count, nil
}

// Restock does nothing: no other table has a piece.
func (*watch) Restock(*gorm.DB, int64) error { return nil }

// Clear deletes the count in Redis, and so all sales. The next sale copies the MySQL row's count. It writes the
// key first: the deletion of a missing key would not fail the EXEC of a load that has read the old row.
func (s *watch) Clear(ctx context.Context, key string) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, s.prefix+key, 0, 0)
		p.Del(ctx, s.prefix+key)
		return nil
	})
	return err
}

func (*watch) Card() api.Card {
	return api.Card{
		ID: "redis-watch", Family: "redis", Source: "002", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Stock: "redis", CriticalStep: api.Read,
		Title: api.Text{EN: "Stock in Redis, WATCH and EXEC", ZH: "Redis 事务 WATCH/MULTI/EXEC"},
		Summary: api.Text{
			EN: "The count is in Redis. A sale watches it, reads it, and writes it only if it has not changed since. Otherwise the sale starts again.",
			ZH: "库存放在 Redis：先监视并读出，期间没有改动才写入，否则重来。",
		},
		When: api.Text{
			EN: "Not for production: under load, most attempts fail, and the sales never reach the database. Use `redis-stock` instead.",
			ZH: "不要用于生产环境：请求一多，多数尝试都失败，卖出的也不会写回数据库。请改用 `redis-stock`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks: []api.Break{
			{Hazard: api.CASStorm, Why: api.Text{
				EN: "Of all requests that watch the same count, one succeeds. The others fail and try again, together with new ones.",
				ZH: "监视同一个库存的请求只有一个成功，其余全部失败，还要和新来的一起重试。",
			}},
			{Hazard: api.WriteBehind, Why: api.Text{
				EN: "The sales are never written to the row. Its count does not fall, and other strategies sell the same pieces from it.",
				ZH: "销售不会回写到数据库那一行：它一直不变，其他策略会从那里再卖一次。",
			}},
			{Hazard: api.Failover, Why: api.Text{
				EN: "The stock is outside MySQL: a new master, or a Redis that lost its data, lacks sales and sells the same pieces again.",
				ZH: "库存不在 MySQL 里：新主或丢了数据的 Redis 缺少已有的销售，会再卖一次。",
			}},
		},
	}
}
