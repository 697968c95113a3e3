package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/migrations"
	"oversell/stock"
	"oversell/trial/lockstest"
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
	return Stock(c, db, nil).(*shelf) //nolint:forcetypeassert // it is one
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
		"without mysql": stockWithoutMySQL, "lost reply": stockLostReply, "life": stockLife, "flushed": stockFlushed, "evicting": stockEvicting, "outbox lost": stockOutboxLost, "two shops": stockTwoShops,
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

func (s *shelf) names(t *testing.T, product int64) []string {
	t.Helper()
	keys, err := s.keys(t.Context(), product)
	if err != nil {
		t.Fatal(err)
	}
	return keys
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
		err = r.run(t.Context(), r.trim, product, product, m.load, m.sale).Err()
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
	if n, err := r.client.XLen(t.Context(), r.names(t, product)[1]).Result(); err != nil || n != 0 {
		t.Errorf("%d orders are in the outbox, %v", n, err)
	}
	if is, err := r.client.SIsMember(t.Context(), r.names(t, product)[2], product).Result(); err != nil || is {
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
	if err := r.run(t.Context(), r.load, product, 10, 1).Err(); err != nil {
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
	if err := r.client.Del(t.Context(), r.names(t, product)[0]).Err(); err != nil {
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
	key := r.names(t, product)[0]
	sellOne(t, r, product, 9)
	old, err := r.client.HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	sellOne(t, r, product, 8)
	sellOne(t, r, product, 7)
	carried(t, r, product)
	outbox := redis.XAddArgs{Stream: r.names(t, product)[1], ID: old["load"] + "-1", Values: []string{"qty", "1"}}
	if err := errors.Join(r.client.Del(t.Context(), r.names(t, product)...).Err(), r.client.HSet(t.Context(), key, old).Err(), r.client.XAdd(t.Context(), &outbox).Err()); err != nil {
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

// stockEvicting changes the policy of Redis while it sells. A sale that Redis may delete is refused, and what was
// sold before is in the row.
func stockEvicting(t *testing.T, s *backends) {
	product := s.newProduct(t, 1000)
	r, sold := s.replicaAt(t, s.Addresses().MySQL, configurable(t)), 0
	set := func(policy, maxmemory string) {
		// In this order: under the old policy, the new limit might evict the stock.
		err := r.client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err()
		if err == nil {
			err = r.client.ConfigSet(t.Context(), "maxmemory", maxmemory).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sell := func() error {
		_, err := r.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "buyer", Wait: time.Minute})
		if err == nil {
			sold++
		}
		return err
	}
	for _, test := range []struct {
		policy, maxmemory string
		refused           bool
	}{
		{"allkeys-lru", "100mb", true},
		{"noeviction", "100mb", false},
		{"allkeys-random", "100mb", true},
		{"volatile-lru", "100mb", false},
		{"allkeys-lfu", "0", false},
		{"allkeys-lfu", "100mb", true},
	} {
		set(test.policy, test.maxmemory)
		var err error
		soon(t, test.policy+" is noticed", func() bool { err = sell(); return (err != nil) == test.refused })
		if ready := Ping(t.Context(), r.client); (ready != nil) != test.refused {
			t.Errorf("%s, maxmemory %s: ready: %v", test.policy, test.maxmemory, ready)
		}
		if test.refused && (!errors.Is(err, stock.ErrUnavailable) || !strings.Contains(err.Error(), "maxmemory-policy "+test.policy)) {
			t.Errorf("%s: %v", test.policy, err)
		}
	}
	set("noeviction", "1") // without memory, nothing is sold, and what was sold still leaves the outbox
	soon(t, "the memory is full", func() bool {
		err := sell()
		return errors.Is(err, stock.ErrUnavailable) && strings.Contains(err.Error(), "OOM")
	})
	carried(t, r, product)
	wantCounts(t, s, r, product, 1000-sold, 1000-sold)
}

// configurable returns a client for a Redis that may be configured: those of a rig refuse it.
func configurable(t *testing.T) redis.UniversalClient {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(listener.Addr().String(), ":")
	_ = listener.Close()
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = server.Wait() })
	c := client(t, "redis://127.0.0.1:"+port+"/0")
	soon(t, "redis-server answers", func() bool { return c.Ping(t.Context()).Err() == nil })
	return c
}

// stockOutboxLost deletes the outbox, like an eviction. If its sales are in the row, nothing was lost. Otherwise
// the next sale is refused, with what to do.
func stockOutboxLost(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	r := s.newReplica(t)
	lose := func(key int) {
		if err := r.client.Del(t.Context(), r.names(t, product)[key]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	sellOne(t, r, product, 9)
	carried(t, r, product)
	lose(1)
	sellOne(t, r, product, 8)
	sellOne(t, r, product, 7)
	lose(1)
	_, err := r.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Wait: time.Minute})
	if !errors.Is(err, stock.ErrUnavailable) || !strings.Contains(err.Error(), "2 sales that are not in MySQL: set the count of the row to 7") {
		t.Errorf("two sales are lost: %v", err)
	}
	if err := r.db.Exec("UPDATE db_stock SET count = 7 WHERE id = ?", product).Error; err != nil {
		t.Fatal(err)
	}
	lose(0)
	sellOne(t, r, product, 6)
	carried(t, r, product)
	wantCounts(t, s, r, product, 6, 6)
}

// stockTwoShops sells the same product of two shops, each with a database and replicas of its own, on one Redis. A
// copy of a database, with another namespace, is a third shop.
func stockTwoShops(t *testing.T, s *backends) {
	product := s.newProduct(t, 200)
	ours, err := mysql.ParseDSN(s.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	theirs := ours.Clone()
	theirs.DBName += "_b"
	first := s.newReplica(t)
	if err := first.db.Exec("CREATE DATABASE " + theirs.DBName).Error; err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.db.Exec("DROP DATABASE " + theirs.DBName).Error }()
	second := s.replicaAt(t, theirs.FormatDSN(), s.client(t))
	pool, err := second.db.DB()
	if err == nil {
		err = migrations.Up(t.Context(), pool)
	}
	if err == nil {
		err = second.db.Exec("INSERT INTO db_stock (id, product_code, stock_code, count) VALUES (?, '1', '1', 300)", product).Error
	}
	if err != nil {
		t.Fatal(err)
	}
	replicas := []*shelf{first, s.newReplica(t), second, s.replicaAt(t, theirs.FormatDSN(), s.client(t))}
	ctx, stop := context.WithCancel(t.Context())
	var sellers, carriers sync.WaitGroup
	for _, r := range replicas {
		r.shop = &stock.Shop{DB: r.db}
		carriers.Go(func() { r.Run(ctx) })
		sellers.Go(func() {
			for range 50 {
				if _, err := r.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Wait: time.Minute}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sellers.Wait()
	stop()
	carriers.Wait()
	for r, want := range map[*shelf]int{first: 100, second: 200} {
		if item, err := r.ledger.Read(t.Context(), product); err != nil || item.Count != want {
			t.Errorf("the row has %d, %v; want %d", item.Count, err, want)
		}
	}
	copied := s.newReplica(t)
	copied.shop = &stock.Shop{DB: copied.db, Namespace: "copy"}
	if err := s.reset(t, copied, product); err != nil {
		t.Fatal(err)
	}
	if n, err := first.client.Exists(t.Context(), first.names(t, product)[0]).Result(); err != nil || n != 1 {
		t.Errorf("the reset of a copy has deleted the stock of the original: %v", err)
	}
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
	if n, err := r.run(t.Context(), r.load, product, 10, load).Int(); err != nil || n != 0 {
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
