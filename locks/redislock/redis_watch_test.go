package redislock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/migrations"
	"oversell/stock"
)

// backends has a MySQL server with the stock, and a Redis server.
type backends struct {
	*rig.Rig
	ledger     *stock.Ledger
	newProduct func(t *testing.T, count int) int64
}

func startBackends(t *testing.T) *backends {
	t.Helper()
	r := rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true, Redis: 1}))
	db, err := stock.Open(r.Addresses().MySQL, 4)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return &backends{r, stock.NewLedger(db), func(t *testing.T, count int) int64 {
		t.Helper()
		item := stock.Item{ProductCode: "redislock", StockCode: "001", Count: count}
		if err := db.Create(&item).Error; err != nil {
			t.Fatal(err)
		}
		return item.ID
	}}
}

func (s *backends) client(t *testing.T) redis.UniversalClient {
	return client(t, s.Addresses().Redis[0])
}

// TestWatch runs all tests of Watch with one MySQL.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := startBackends(t)
	for name, test := range map[string]func(*testing.T, *backends){
		"conflict": watchConflict, "refusals": watchRefusals, "holder": watchHolder, "lost reply": watchLostReply, "late reply": watchLateReply,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// watchConflict lets another client write the count between a sale's WATCH and EXEC. A sale that
// may not wait returns ErrConflict, not ErrSoldOut. A sale that may wait tries again.
func watchConflict(t *testing.T, s *backends) {
	product := s.newProduct(t, 10)
	c := s.client(t)
	shelf := Watch(c, s.ledger, "")
	// contendedBy returns a context that makes the first EXECs fail, this number of times: before
	// each of them, another client writes the watched key.
	contendedBy := func(times int) context.Context {
		return locks.WithTracer(t.Context(), func(ctx context.Context, e api.Event) {
			if e.Step == api.Writing && times > 0 {
				times--
				if err := c.Decr(ctx, "redis-watch:"+api.Key(product)).Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	o := stock.Order{Product: product, Qty: 1, Owner: "buyer"}
	receipt, err := shelf.Deduct(contendedBy(1), o)
	if !errors.Is(err, stock.ErrConflict) || errors.Is(err, stock.ErrSoldOut) || receipt.Retries != 1 {
		t.Errorf("a conflict in its only try: %d retries, %v", receipt.Retries, err)
	}
	o.Wait = time.Minute
	receipt, err = shelf.Deduct(contendedBy(3), o)
	if err != nil || receipt.Retries != 3 || receipt.Remaining != 10-1-3-1 {
		t.Errorf("three conflicts: %d retries, %d left, %v", receipt.Retries, receipt.Remaining, err)
	}
}

// watchRefusals checks that a rejected sale takes no stock, and that its connection does not keep
// the WATCH.
func watchRefusals(t *testing.T, s *backends) {
	product := s.newProduct(t, 3)
	c, err := Open(s.Addresses().Redis[0], 1) // with one connection, a sale notices a leak
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	shelf := Watch(c, s.ledger, "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	midway, hangUp := context.WithCancel(t.Context())
	midway = locks.WithTracer(midway, func(_ context.Context, e api.Event) {
		if e.Step == api.Read {
			hangUp()
		}
	})
	late, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	for _, test := range []struct {
		name  string
		ctx   context.Context
		order stock.Order
		want  error
	}{
		{"too many", t.Context(), stock.Order{Product: product, Qty: 4}, stock.ErrSoldOut},
		{"unknown", t.Context(), stock.Order{Product: 1 << 60, Qty: 1}, stock.ErrUnknownProduct},
		{"gone before", gone, stock.Order{Product: product, Qty: 1}, stock.ErrCancelled},
		{"gone midway", midway, stock.Order{Product: product, Qty: 1, Work: time.Hour}, stock.ErrCancelled},
		{"too late", late, stock.Order{Product: product, Qty: 1, Work: time.Hour}, stock.ErrCancelled},
	} {
		if _, err := shelf.Deduct(test.ctx, test.order); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	if left, err := shelf.(locks.StockHolder).Count(t.Context(), product); err != nil || left != 3 {
		t.Errorf("%d left, %v", left, err)
	}
	// A WATCH that a rejected sale left on the connection could make the next EXEC fail.
	if receipt, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 3}); err != nil || receipt.Remaining != 0 {
		t.Errorf("after the refusals: %d left, %v", receipt.Remaining, err)
	}
}

// watchHolder checks that the first sale copies the count from the MySQL row to Redis. Sales must
// not write the row.
func watchHolder(t *testing.T, s *backends) {
	product := s.newProduct(t, 5)
	shelf := Watch(s.client(t), s.ledger, "")
	count := func(want int) {
		t.Helper()
		if got, err := shelf.(locks.StockHolder).Count(t.Context(), product); err != nil || got != want {
			t.Errorf("the count is %d, %v; want %d", got, err, want)
		}
	}
	count(5)
	if _, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 2}); err != nil {
		t.Fatal(err)
	}
	count(3)
	if item, err := s.ledger.Read(t.Context(), product); err != nil || item.Count != 5 {
		t.Errorf("the row has %d, %v", item.Count, err)
	}
	if err := shelf.(locks.Cleaner).Clear(t.Context(), api.Key(product)); err != nil {
		t.Fatal(err)
	}
	count(5)
	if _, err := shelf.(locks.StockHolder).Count(t.Context(), 1<<60); !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("the count of an unknown product: %v", err)
	}
}

// watchLostReply breaks the connection before an EXEC is answered. The sale must return an error
// that does not claim that no stock was taken.
func watchLostReply(t *testing.T, s *backends) {
	product := s.newProduct(t, 5)
	link := linkTo(t, s.Addresses().Redis[0])
	shelf := Watch(client(t, s.RedisURL(link.Addr())), s.ledger, "")
	if _, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 1}); err != nil {
		t.Fatal(err)
	}
	held, free := link.HoldNext("exec")
	defer free()
	sold := make(chan error, 1)
	go func() {
		_, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Wait: time.Minute})
		sold <- err
	}()
	<-held
	link.Cut(true)
	if err := <-sold; err == nil || locks.NothingTaken(err) {
		t.Errorf("the answer to EXEC is lost: %v", err)
	}
	if _, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 1}); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("redis is gone before anything was sent: %v", err)
	}
}

// watchLateReply delays an EXEC, and so its answer, by 3 s, as on a busy machine. This delay is
// shorter than execTimeout, so the sale succeeds.
func watchLateReply(t *testing.T, s *backends) {
	product := s.newProduct(t, 5)
	link := linkTo(t, s.Addresses().Redis[0])
	shelf := Watch(client(t, s.RedisURL(link.Addr())), s.ledger, "")
	if _, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 1}); err != nil {
		t.Fatal(err)
	}
	held, free := link.HoldNext("exec")
	defer free()
	sold := make(chan error, 1)
	go func() {
		_, err := shelf.Deduct(t.Context(), stock.Order{Product: product, Qty: 1})
		sold <- err
	}()
	<-held
	time.Sleep(3 * time.Second)
	free()
	if err := <-sold; err != nil {
		t.Errorf("the answer to EXEC is late: %v", err)
	}
}
