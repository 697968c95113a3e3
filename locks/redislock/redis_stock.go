package redislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

var (
	//go:embed evicts.lua
	evictsLua string
	//go:embed redis_stock_sell.lua
	stockSellLua string
	//go:embed redis_stock_load.lua
	stockLoadLua string
	//go:embed redis_stock_trim.lua
	stockTrimLua string
	//go:embed redis_stock_clear.lua
	stockClearLua string
)

// Stock sells in Redis and writes to MySQL later (write-behind). A sale is one script in one round
// trip: it checks the count, reduces the count, and adds the order to an outbox. The method Run
// ([locks.Runner]) subtracts the sales in the outbox from the row in MySQL.
//
// The keys share a hash tag, because a script may use only one slot of a cluster. They have the name of the shop:
// with the keys of another one, its pieces would be sold, and taken from the wrong row.
func Stock(c redis.UniversalClient, db *gorm.DB, shop *stock.Shop) locks.Strategy {
	return &shelf{
		client: c, db: db, shop: shop, ledger: stock.NewLedger(db), sold: make(chan struct{}, 1),
		sell: redis.NewScript(evictsLua + stockSellLua), load: redis.NewScript(stockLoadLua), trim: redis.NewScript(stockTrimLua),
		clear: redis.NewScript(stockClearLua),
	}
}

type shelf struct {
	client                  redis.UniversalClient
	db                      *gorm.DB
	shop                    *stock.Shop
	ledger                  *stock.Ledger
	sell, load, trim, clear *redis.Script
	loading                 singleflight.Group
	sold                    chan struct{} // wakes Run
}

// taken is the step of a sale that is in Redis, but not in the row yet.
const taken api.Step = "taken"

// keys returns the keys of a product's count, its outbox, and the set of products with sales.
func (s *shelf) keys(ctx context.Context, product int64) ([]string, error) {
	shop, err := s.shop.Name(ctx)
	if err != nil {
		return nil, err
	}
	folder := "{" + strings.TrimSuffix("redis-stock:"+shop, ":") + "}:"
	name := folder + strconv.FormatInt(product, 10)
	return []string{name, name + ":outbox", folder + "pending"}, nil
}

// run sends a script with the keys of a product.
func (s *shelf) run(ctx context.Context, script *redis.Script, product int64, args ...any) *redis.Cmd {
	keys, err := s.keys(ctx, product)
	if err != nil {
		return redis.NewCmdResult(nil, err)
	}
	return script.Run(ctx, s.client, keys, args...)
}

func (s *shelf) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key := api.Key(o.Product)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	// This strategy has no lock, so the work is done before the script.
	if err := locks.Work(ctx, o.Work); err != nil {
		return r, err
	}
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	for began := time.Now(); ; {
		asked := time.Now()
		r.Waited = asked.Sub(began)
		r.Remaining, err = s.take(ctx, o)
		r.Held = time.Since(asked)
		if !errors.Is(err, errNotLoaded) {
			break
		}
		switch err := s.bring(ctx, o.Product); {
		case errors.Is(err, stock.ErrConflict) && time.Since(began) < o.Wait:
			r.Retries++
		case err != nil:
			return r, err
		}
	}
	if err != nil {
		return r, err
	}
	// DANGER: the sale is in Redis only. If Redis loses its data before the sale is in the row, the
	// old count of the row is copied to Redis, and the same pieces are sold once more.
	locks.Trace(ctx, taken, key, o.Owner, 0)
	select {
	case s.sold <- struct{}{}:
	default: // a wake-up is pending already
	}
	locks.Trace(ctx, api.Written, key, o.Owner, 0)
	return r, nil
}

// take sells by one script. The script is sent only once (Open disables retries), because a second
// script would sell a second time. If no answer comes, the outcome is unknown.
func (s *shelf) take(ctx context.Context, o stock.Order) (left int, err error) {
	if ctx.Err() != nil {
		return 0, beforeExec(ctx, nil)
	}
	keys, err := s.keys(ctx, o.Product)
	if err != nil {
		return 0, err
	}
	// The end of ctx cannot stop the script any more, so take waits for the answer.
	free, cancel := context.WithTimeout(context.WithoutCancel(ctx), execTimeout)
	defer cancel()
	// Concurrent sales of this replica share one message, because a system call costs more than
	// a sale. In a measurement, this gave a quarter more sales per second.
	together, err := s.client.AutoPipeline()
	if err != nil {
		return 0, beforeExec(free, err)
	}
	answer, err := s.sell.Run(free, together, keys, o.Qty, o.Product, o.Owner).Int64Slice()
	var dial *net.OpError
	switch {
	case errors.Is(err, redis.ErrPoolTimeout), errors.As(err, &dial) && dial.Op == "dial":
		return 0, beforeExec(free, err)
	case err != nil:
		return 0, afterExec(err)
	}
	if answer[0] < 0 {
		return 0, errNotLoaded
	}
	if answer[0] == 0 {
		err = stock.ErrSoldOut
	}
	return int(answer[1]), err
}

// bring copies the count from the row to Redis, once for all concurrent requests of this replica.
// carry makes the copy under its row lock, which excludes bring and carry of other replicas.
func (s *shelf) bring(ctx context.Context, product int64) error {
	done := s.loading.DoChan(strconv.FormatInt(product, 10), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), execTimeout)
		defer cancel()
		if _, err := s.ledger.Read(ctx, product); err != nil {
			return nil, err // unknown product, or MySQL is unavailable
		}
		_, err := s.carry(ctx, product, func(tx *gorm.DB, m *saleID) error {
			// carry has subtracted the sales in the outbox from the row, so the row is up to date.
			var count int
			if err := tx.Raw("SELECT count FROM db_stock WHERE id = ?", product).Row().Scan(&count); err != nil {
				return err
			}
			loaded, err := s.run(ctx, s.load, product, count, m.load+1).Int()
			if err != nil {
				return beforeExec(ctx, err)
			}
			if loaded == 1 {
				m.load, m.sale = m.load+1, 0
			}
			return nil
		})
		return nil, err
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return beforeExec(ctx, nil)
	}
}

// saleID identifies a sale. load is the number of the last load before it (a load copies the count
// from the row to Redis). sale is its number since that load.
type saleID struct{ load, sale int64 }

// carry subtracts the sales in the outbox from the row. The same transaction stores the id of the
// last sale in db_redis_stock. So each sale is subtracted once, even if a replica dies. The
// transaction locks that row of db_redis_stock, to exclude other replicas. If the function then is
// set, it also runs in the transaction.
func (s *shelf) carry(ctx context.Context, product int64, then func(*gorm.DB, *saleID) error) (last saleID, err error) {
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		err := tx.Exec("INSERT INTO db_redis_stock (product) VALUES (?) ON DUPLICATE KEY UPDATE product = product", product).Error
		if err == nil {
			err = tx.Raw("SELECT loads, carried FROM db_redis_stock WHERE product = ? FOR UPDATE", product).Row().Scan(&last.load, &last.sale)
		}
		if err != nil {
			return err
		}
		// Read the outbox under the lock. Otherwise another replica could subtract the same sales.
		pieces, err := s.pending(ctx, product, &last)
		if err == nil && pieces > 0 {
			err = tx.Exec("UPDATE db_stock SET count = count - ? WHERE id = ?", pieces, product).Error
		}
		if err == nil && then != nil {
			err = then(tx, &last)
		}
		if err != nil {
			return err
		}
		return tx.Exec("UPDATE db_redis_stock SET loads = ?, carried = ? WHERE product = ?", last.load, last.sale, product).Error
	})
	if errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrCancelled) || errors.Is(err, stock.ErrConflict) {
		return last, err
	}
	return last, stock.NothingWritten(ctx, err)
}

// pending adds up the pieces of all outbox entries after last. It sets last to the newest entry.
func (s *shelf) pending(ctx context.Context, product int64, last *saleID) (pieces int, err error) {
	const batch = 1000
	keys, err := s.keys(ctx, product)
	for err == nil {
		after := fmt.Sprintf("(%d-%d", last.load, last.sale)
		entries, err := s.client.XRangeN(ctx, keys[1], after, "+", batch).Result()
		if err != nil {
			return 0, beforeExec(ctx, err)
		}
		for _, e := range entries {
			qty, _ := e.Values["qty"].(string)
			n, err := strconv.Atoi(qty)
			if err == nil {
				_, err = fmt.Sscanf(e.ID, "%d-%d", &last.load, &last.sale)
			}
			if err != nil {
				return 0, fmt.Errorf("outbox entry %s: %w", e.ID, err)
			}
			pieces += n
		}
		if len(entries) < batch {
			return pieces, nil
		}
	}
	return 0, err
}

const (
	// gather is the pause of Run after a sale, so that many sales share one transaction.
	gather = 50 * time.Millisecond
	// carryInterval is the interval at which Run subtracts the sales of dead replicas from the row.
	// It is also the pause after an error of Redis or MySQL.
	carryInterval = time.Second
	// carryTimeout limits the duration of each carryAll, also of the last one when Run ends.
	carryTimeout = 5 * time.Second
)

// Run calls carryAll at once, after sales and every carryInterval, and once more when ctx ends.
func (s *shelf) Run(ctx context.Context) {
	_ = s.carryAll(ctx) // it learns the name of the shop, without which nothing is sold while MySQL is down
	tick := time.Tick(carryInterval)
	for {
		select {
		case <-ctx.Done():
			_ = s.carryAll(context.WithoutCancel(ctx))
			return
		case <-s.sold:
			_ = locks.Work(ctx, gather)
		case <-tick:
		}
		if s.carryAll(ctx) != nil {
			_ = locks.Work(ctx, carryInterval) // no sale is lost: the next carryAll tries again
		}
	}
}

// carryAll carries all outboxes, also of other replicas. Without sales, it sends Redis one request.
func (s *shelf) carryAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	keys, err := s.keys(ctx, 0)
	if err != nil {
		return err
	}
	products, err := s.client.SMembers(ctx, keys[2]).Result()
	for _, name := range products {
		product, bad := strconv.ParseInt(name, 10, 64)
		if bad != nil {
			continue // this member of the set is no product
		}
		last, failed := s.carry(ctx, product, nil)
		if failed == nil {
			// If the replica dies before trim deletes these sales, the next carry skips them.
			failed = s.run(ctx, s.trim, product, product, last.load, last.sale).Err()
		}
		err = errors.Join(err, failed)
	}
	return err
}

func (s *shelf) Count(ctx context.Context, product int64) (int, error) {
	keys, err := s.keys(ctx, product)
	if err != nil {
		return 0, err
	}
	return countOrRow(ctx, s.client.HGet(ctx, keys[0], "count"), s.ledger, product)
}

func (s *shelf) Holds(ctx context.Context, product int64) (bool, error) {
	keys, err := s.keys(ctx, product)
	if err != nil {
		return false, err
	}
	return s.client.HExists(ctx, keys[0], "count").Result()
}

// Restock waits for a running carry. The new load number makes later carries skip the sales from before the
// reset, even if Redis could not be reached. It inserts the row if it is missing, so that a first load waits.
func (s *shelf) Restock(tx *gorm.DB, product int64) error {
	return tx.Exec("INSERT INTO db_redis_stock (product, loads) VALUES (?, 1) ON DUPLICATE KEY UPDATE loads = loads + 1, carried = 0", product).Error
}

// Clear deletes the count and the sales from before the last Restock. It leaves the load number for a minute,
// so that a load from before the reset that arrives late is refused.
func (s *shelf) Clear(ctx context.Context, key string) error {
	product, err := strconv.ParseInt(strings.TrimPrefix(key, "stock:"), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // no product, so no stock
	}
	var load int64
	if err := s.db.WithContext(ctx).Raw("SELECT loads FROM db_redis_stock WHERE product = ?", product).Scan(&load).Error; err != nil || load == 0 {
		return err
	}
	return s.run(ctx, s.clear, product, product, load).Err()
}

func (*shelf) Card() api.Card {
	return api.Card{
		ID: "redis-stock", Family: "redis", Source: "beyond", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Stock: "redis", CriticalStep: api.Writing,
		Title: api.Text{EN: "Stock in Redis, written behind", ZH: "Redis 预扣库存，异步回写 MySQL"},
		Summary: api.Text{
			EN: "One script takes from the count in Redis and adds the order to an outbox; the replicas write the outbox to the row, each sale once.",
			ZH: "一个 Lua 脚本在 Redis 里扣减并写入 outbox；各副本把 outbox 搬回数据库那一行，每笔恰好一次。",
		},
		When: api.Text{
			EN: "Choose it for a flash sale that is too large for MySQL, if you accept some overselling after a failure of Redis. Otherwise use `combining`.",
			ZH: "秒杀流量超出 MySQL 的能力，又能接受 Redis 故障后少量超卖时选它。否则用 `combining`。",
		},
		Setting: api.Text{
			EN: "It does not sell from a Redis whose `maxmemory-policy` is one of `allkeys-*`, which may delete sales: set it to `noeviction`.",
			ZH: "Redis 的 `maxmemory-policy` 是 `allkeys-*` 时可能删掉已售出的记录，因此拒绝销售：请设为 `noeviction`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause, api.CASStorm, api.WriteBehind},
		Breaks: []api.Break{{Hazard: api.Failover, At: taken, Why: api.Text{
			EN: "A sale that is not in the row yet is in one Redis only: a new master without it, or a Redis that lost its data, sells it again.",
			ZH: "已售出、还没搬回 MySQL 的只存在于一个 Redis：新主没收到或 Redis 丢了数据，就会再卖一次。",
		}}},
	}
}
