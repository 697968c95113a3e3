package local

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// pausedSale is a sale that pauses at a traced step until end is called.
type pausedSale struct {
	there, goOn chan struct{}
	receipt     stock.Receipt
	err         error
	over        chan struct{}
}

func pauseAt(t *testing.T, s locks.Strategy, o stock.Order, at api.Step) *pausedSale {
	t.Helper()
	p := &pausedSale{there: make(chan struct{}), goOn: make(chan struct{}), over: make(chan struct{})}
	var once sync.Once // pause only once: a retry of the same sale does not pause
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == at {
			once.Do(func() {
				close(p.there)
				<-p.goOn
			})
		}
	})
	go func() {
		defer close(p.over)
		p.receipt, p.err = s.Deduct(ctx, o)
	}()
	select {
	case <-p.there:
	case <-p.over:
		t.Fatalf("the sale did not reach %q: %v", at, p.err)
	}
	return p
}

func (p *pausedSale) end() (stock.Receipt, error) {
	close(p.goOn)
	<-p.over
	return p.receipt, p.err
}

func countOf(t *testing.T, s *mutexInTx, product int64) int {
	t.Helper()
	item, err := stock.NewLedger(s.db).Read(t.Context(), product)
	if err != nil {
		t.Fatal(err)
	}
	return item.Count
}

// TestMutexInTxLoses lets the second sale read after the first sale has unlocked, and before the
// first sale commits. Both sales succeed in one process, but the stock falls by one.
func TestMutexInTxLoses(t *testing.T) {
	s := &mutexInTx{db: database(t)}
	product := newProduct(t, s.db, 10)
	first := pauseAt(t, s, stock.Order{Product: product, Qty: 1, Owner: "first", Wait: 20 * time.Second}, unlocked)
	second := pauseAt(t, s, stock.Order{Product: product, Qty: 1, Owner: "second", Wait: 20 * time.Second}, api.Read)
	for _, sale := range []*pausedSale{first, second} {
		if r, err := sale.end(); err != nil || r.Remaining != 9 {
			t.Fatalf("%+v, %v; want a sale that leaves 9", r, err)
		}
	}
	if left := countOf(t, s, product); left != 9 {
		t.Errorf("%d left after two sales of 10; want one lost update", left)
	}
}

// TestMutexInTxExcludes checks that a request waits while another request holds the mutex. The wait
// must end when the order's wait is over, or when the request is cancelled.
func TestMutexInTxExcludes(t *testing.T) {
	s := &mutexInTx{db: database(t)}
	product := newProduct(t, s.db, 10)
	first := pauseAt(t, s, stock.Order{Product: product, Qty: 1, Owner: "first", Wait: time.Minute}, api.Read)
	_, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "second", Wait: 50 * time.Millisecond})
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("while the mutex is taken: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = s.Deduct(ctx, stock.Order{Product: product, Qty: 1, Owner: "third", Wait: time.Minute})
	if !locks.NothingTaken(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
	if _, err := first.end(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 20, Owner: "greedy"}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("20 of 9 pieces: %v", err)
	}
	if left := countOf(t, s, product); left != 9 {
		t.Errorf("%d left, want 9", left)
	}
}

// TestMutexInTxRowLocked lets an uncommitted transaction lock the row for longer than another
// request waits. The error of that request must be contention, not an outage.
func TestMutexInTxRowLocked(t *testing.T) {
	s := &mutexInTx{db: database(t)}
	product := newProduct(t, s.db, 10)
	first := pauseAt(t, s, stock.Order{Product: product, Qty: 1, Owner: "first", Wait: time.Minute}, unlocked)
	r, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: "second"})
	if !errors.Is(err, locks.ErrNotAcquired) || !stock.IsContention(err) || r.Retries != 1 {
		t.Errorf("%+v, %v; want 1205 and then no time left", r, err)
	}
	if _, err := first.end(); err != nil {
		t.Fatal(err)
	}
	if left := countOf(t, s, product); left != 9 {
		t.Errorf("%d left, want 9", left)
	}
}

// TestMutexInTxSnapshotIsolation checks that MariaDB rejects a write to a row that changed after
// the snapshot. The sale must start again with a new snapshot, and no update may be lost.
func TestMutexInTxSnapshotIsolation(t *testing.T) {
	var version string
	if err := database(t).Raw("SELECT VERSION()").Row().Scan(&version); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(version, "MariaDB") {
		t.Skip("MySQL has no innodb_snapshot_isolation: " + version)
	}
	dsn, err := mysql.ParseDSN(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	dsn.Params = map[string]string{"innodb_snapshot_isolation": "1"}
	db, err := stock.Open(dsn.FormatDSN(), 8)
	if err != nil {
		t.Fatal(err)
	}
	s := &mutexInTx{db: db}
	product := newProduct(t, s.db, 10)
	first := pauseAt(t, s, stock.Order{Product: product, Qty: 1, Owner: "first", Wait: 20 * time.Second}, unlocked)
	second := pauseAt(t, s, stock.Order{Product: product, Qty: 1, Owner: "second", Wait: 20 * time.Second}, api.Read)
	if r, err := first.end(); err != nil || r.Remaining != 9 {
		t.Errorf("the first sale: %+v, %v; want one that leaves 9", r, err)
	}
	if r, err := second.end(); err != nil || r.Remaining != 8 || r.Retries != 1 {
		t.Errorf("the second sale: %+v, %v; want one that leaves 8, after a retry", r, err)
	}
	if left := countOf(t, s, product); left != 8 {
		t.Errorf("%d left after two sales of 10", left)
	}
}
