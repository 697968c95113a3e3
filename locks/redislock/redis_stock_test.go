package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/lockstest"
	"oversell/stock"
)

// newReplica returns the strategy of one replica. Its Run is not started.
func (s *backends) newReplica(t *testing.T) *shelf {
	t.Helper()
	return s.replicaAt(t, s.Addresses().MySQL, s.client(t))
}

func (s *backends) replicaAt(t *testing.T, dsn string, c redis.UniversalClient) *shelf {
	t.Helper()
	db, err := stock.Open(dsn, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	})
	return Stock(c, db).(*shelf) //nolint:forcetypeassert // it is one
}

// TestStock runs all tests of Stock with one MySQL.
func TestStock(t *testing.T) {
	t.Parallel()
	s := startBackends(t)
	for name, test := range map[string]func(*testing.T, *backends){
		"storm": stockStorm, "died before the trim": stockBeforeTrim,
		"died before the commit": stockBeforeCommit, "died while loading": stockDiedLoading, "count lost": stockCountLost,
		"fell back": stockFellBack, "reset under way": stockReset, "reset without redis": stockResetAlone,
		"late load":     stockLateLoad,
		"without mysql": stockWithoutMySQL, "lost reply": stockLostReply, "life": stockLife, "flushed": stockFlushed,
	} {
		// Not in parallel: carryAll subtracts the sales of all products from their rows.
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func (s *backends) row(t *testing.T, product int64) int {
	t.Helper()
	item, err := s.ledger.Read(t.Context(), product)
	if err != nil {
		t.Fatal(err)
	}
	return item.Count
}

func sellOne(t *testing.T, r *shelf, product int64, want int) {
	t.Helper()
	receipt, err := r.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "buyer", Wait: time.Minute})
	if err != nil || receipt.Remaining != want {
		t.Fatalf("sold, %d left, %v; want %d left", receipt.Remaining, err, want)
	}
}

// carried subtracts the product's sales in the outbox from the row, as Run does.
func carried(t *testing.T, r *shelf, product int64) {
	t.Helper()
	m, err := r.carry(t.Context(), product, nil)
	if err == nil {
		err = r.trim.Run(t.Context(), r.client, stockKeys(product), product, m.load, m.sale).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantCounts(t *testing.T, s *backends, r *shelf, product int64, row, kept int) {
	t.Helper()
	if got, err := r.Count(t.Context(), product); err != nil || got != kept {
		t.Errorf("redis has %d, %v; want %d", got, err, kept)
	}
	if got := s.row(t, product); got != row {
		t.Errorf("the row has %d, want %d", got, row)
	}
}

// stockStorm sends 150 orders for 100 pieces from 24 tasks on three replicas, while each replica
// calls Run. In the end the row and Redis have the count 0, and the outbox is empty.
func stockStorm(t *testing.T, s *backends) {
	product := s.newProduct(t, 100)
	ctx, stop := context.WithCancel(t.Context())
	var carriers, all sync.WaitGroup
	var asked, sold, soldOut atomic.Int64
	for range 3 {
		r := s.newReplica(t)
		carriers.Go(func() { r.Run(ctx) })
		for task := range 8 {
			all.Go(func() {
				for asked.Add(1) <= 150 {
					_, err := r.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: fmt.Sprint(task), Wait: time.Minute})
					switch {
					case err == nil:
						sold.Add(1)
					case errors.Is(err, stock.ErrSoldOut):
						soldOut.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	soon(t, "the row has all sales", func() bool { return s.row(t, product) == 0 })
	stop()
	carriers.Wait()
	r := s.newReplica(t)
	wantCounts(t, s, r, product, 0, 0)
	if sold.Load() != 100 || soldOut.Load() != 50 {
		t.Errorf("%d sold, %d sold out", sold.Load(), soldOut.Load())
	}
	if n, err := r.client.XLen(t.Context(), stockKeys(product)[1]).Result(); err != nil || n != 0 {
		t.Errorf("%d orders are in the outbox, %v", n, err)
	}
	if is, err := r.client.SIsMember(t.Context(), pendingName, product).Result(); err != nil || is {
		t.Errorf("nothing is to be carried, but products are pending: %v", err)
	}
}

// stockBeforeTrim ends a replica that has subtracted sales from the row, but has not deleted them
// from the outbox. The next replica must not subtract these sales again.
func stockBeforeTrim(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	dead, successor := s.newReplica(t), s.newReplica(t)
	sellOne(t, dead, product, 9)
	sellOne(t, dead, product, 8)
	if _, err := dead.carry(t.Context(), product, nil); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, s, successor, product, 8, 8)
	sellOne(t, successor, product, 7)
	carried(t, successor, product)
	wantCounts(t, s, successor, product, 7, 7)
	carried(t, successor, product)
	wantCounts(t, s, successor, product, 7, 7)
}

// stockBeforeCommit ends carry before its COMMIT. The next carry must subtract the sale once.
func stockBeforeCommit(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	dead, successor := s.newReplica(t), s.newReplica(t)
	sellOne(t, dead, product, 9)
	died := errors.New("died")
	if _, err := dead.carry(t.Context(), product, func(*gorm.DB, *saleID) error { return died }); !errors.Is(err, died) {
		t.Errorf("the carrier says %v", err)
	}
	wantCounts(t, s, successor, product, 10, 9)
	carried(t, successor, product)
	wantCounts(t, s, successor, product, 9, 9)
}

// stockDiedLoading stores the count in Redis, but not the number of this load in MySQL. The next
// carry must still subtract the sale from the row.
func stockDiedLoading(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	if err := r.load.Run(t.Context(), r.client, stockKeys(product)[:1], 10, 1).Err(); err != nil {
		t.Fatal(err)
	}
	sellOne(t, r, product, 9)
	carried(t, r, product)
	wantCounts(t, s, r, product, 9, 9)
}

// stockCountLost deletes only the count in Redis, like an eviction. The sales in the outbox must be
// subtracted from the row before the count is loaded again.
func stockCountLost(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	sellOne(t, r, product, 9)
	sellOne(t, r, product, 8)
	if err := r.client.Del(t.Context(), stockKeys(product)[0]).Err(); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for range 2 { // two replicas load at once
		other := s.newReplica(t)
		both.Go(func() {
			if _, err := other.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Wait: time.Minute}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	carried(t, r, product)
	wantCounts(t, s, r, product, 6, 6)
}

// stockFellBack gives Redis an older state than the row, as after a fail-over. The next sale is not
// subtracted from the row, because MySQL has its id already. After that, the count is loaded again,
// and each later sale must be subtracted.
func stockFellBack(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	key := stockKeys(product)[0]
	sellOne(t, r, product, 9)
	old, err := r.client.HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	sellOne(t, r, product, 8)
	sellOne(t, r, product, 7)
	carried(t, r, product)
	if err := errors.Join(r.client.Del(t.Context(), stockKeys(product)...).Err(), r.client.HSet(t.Context(), key, old).Err()); err != nil {
		t.Fatal(err)
	}
	sellOne(t, r, product, 8) // that piece was sold before
	carried(t, r, product)
	wantCounts(t, s, r, product, 7, 7)
	sellOne(t, r, product, 6)
	carried(t, r, product)
	wantCounts(t, s, r, product, 6, 6)
}

// stockFlushed deletes all data of Redis. A piece whose sale is not in the row yet is sold again.
// Sales after the flush must be subtracted from the row.
func stockFlushed(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	for left := 9; left >= 6; left-- {
		sellOne(t, r, product, left)
	}
	carried(t, r, product)
	sellOne(t, r, product, 5)
	if err := r.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, s, r, product, 6, 6)
	sellOne(t, r, product, 5) // this piece was sold before the flush
	carried(t, r, product)
	wantCounts(t, s, r, product, 5, 5)
}

// stockReset resets the stock while carry subtracts sales from the row. Sales from before the reset
// must not change the new count.
func stockReset(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r, other := s.newReplica(t), s.newReplica(t)
	sellOne(t, r, product, 9)
	reset := make(chan error, 1)
	_, err := r.carry(t.Context(), product, func(*gorm.DB, *saleID) error {
		// carry must have locked this row by now, so that no other carry can run.
		err := other.db.Exec("SELECT 1 FROM db_redis_stock WHERE product = ? FOR UPDATE NOWAIT", product).Error
		if !stock.IsContention(err) {
			t.Errorf("the record that a carry has locked is free: %v", err)
		}
		go func() {
			reset <- s.reset(t, other, product)
		}()
		return nil
	})
	if err := errors.Join(err, <-reset); err != nil {
		t.Fatal(err)
	}
	carried(t, r, product)
	wantCounts(t, s, r, product, 50, 50)
	sellOne(t, r, product, 49)
	carried(t, r, product)
	wantCounts(t, s, r, product, 49, 49)
}

// reset sets the stock to 50, as PUT /stock/:id does.
func (s *backends) reset(t *testing.T, r *shelf, product int64) error {
	t.Helper()
	err := s.ledger.Reset(t.Context(), product, 50, func(tx *gorm.DB) error { return r.Restock(tx, product) })
	return errors.Join(err, r.Clear(t.Context(), api.Key(product)))
}

// stockLateLoad lets a load from before a reset arrive after it, when its transaction has ended. Redis must
// refuse it, or the old count would be for sale.
func stockLateLoad(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	if err := s.reset(t, r, product); err != nil {
		t.Fatal(err)
	}
	sellOne(t, r, product, 49)
	if err := s.reset(t, r, product); err != nil {
		t.Fatal(err)
	}
	var load int64
	if err := r.db.Raw("SELECT loads FROM db_redis_stock WHERE product = ?", product).Scan(&load).Error; err != nil {
		t.Fatal(err)
	}
	if n, err := r.load.Run(t.Context(), r.client, stockKeys(product)[:1], 10, load).Int(); err != nil || n != 0 {
		t.Errorf("the late load: %d, %v", n, err)
	}
	sellOne(t, r, product, 49)
	carried(t, r, product)
	wantCounts(t, s, r, product, 49, 49)
}

// stockResetAlone resets the stock without Redis. Old sales in Redis must not change the new count.
func stockResetAlone(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	sellOne(t, r, product, 9)
	cutOff := s.replicaAt(t, s.Addresses().MySQL, client(t, "redis://127.0.0.1:1/0"))
	if err := s.reset(t, cutOff, product); err == nil {
		t.Error("cleared without Redis, and without an error")
	}
	carried(t, r, product)
	wantCounts(t, s, r, product, 50, 50)
	sellOne(t, r, product, 49)
	carried(t, r, product)
	wantCounts(t, s, r, product, 49, 49)
}

// stockWithoutMySQL checks that a sale needs MySQL only for the first load of the count into Redis.
func stockWithoutMySQL(t *testing.T, s *backends) {
	product := s.newProduct(t, 3)
	noMySQL := s.replicaAt(t, "root@tcp(127.0.0.1:1)/oversell", s.client(t))
	if _, err := noMySQL.Deduct(t.Context(), stock.Order{Product: product, Qty: 1}); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("not loaded: %v", err)
	}
	sellOne(t, s.newReplica(t), product, 2)
	sellOne(t, noMySQL, product, 1)
}

// stockLostReply cuts the connection while a sale waits for the answer to its script. The outcome
// is unknown, so the script must not be sent again.
func stockLostReply(t *testing.T, s *backends) {
	product := s.newProduct(t, 5)
	link := linkTo(t, s.Addresses().Redis[0])
	r := s.replicaAt(t, s.Addresses().MySQL, client(t, s.RedisURL(link.Addr())))
	sellOne(t, r, product, 4)
	held, free := link.HoldNext("evalsha")
	defer free()
	sold := make(chan error, 1)
	go func() {
		_, err := r.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Wait: time.Minute})
		sold <- err
	}()
	<-held
	link.Cut(true)
	link.Cut(false)
	if err := <-sold; err == nil || locks.NothingTaken(err) {
		t.Errorf("the answer to the script is lost: %v", err)
	}
	wantCounts(t, s, s.newReplica(t), product, 5, 4)
}

// stockLife calls Run while MySQL is down. When MySQL is up, Run must subtract the sales of a dead
// replica from the row. When Run ends, it must subtract the last sales.
func stockLife(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	dead := s.newReplica(t)
	sellOne(t, dead, product, 9)
	dsn, err := mysql.ParseDSN(s.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	link, err := lockstest.NewLink(t.Context(), dsn.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = link.Close() }()
	link.Cut(true)
	dsn.Addr = link.Addr()
	successor := s.replicaAt(t, dsn.FormatDSN(), s.client(t))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { successor.Run(ctx); close(ended) }()
	sellOne(t, successor, product, 8)
	link.Cut(false)
	soon(t, "the row has both sales", func() bool { return s.row(t, product) == 8 })
	sellOne(t, successor, product, 7)
	stop()
	<-ended
	wantCounts(t, s, successor, product, 7, 7)
}
