package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/migrations"
	"oversell/stock"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// open is a test lock that excludes no other request, like a lock whose lease has expired. But its
// grants have fences, like the grants of a real lock.
type open struct {
	fence func(owner string) int64
	raise func(ctx context.Context, floor int64) (int64, error)
	// granted, if set, is called with each granted Lock.
	granted func(*locks.Lock)
}

func (open) Card() api.Card { return api.Card{ID: "open"} }

func (l open) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	h := locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Fence: l.fence(r.Owner), AdvanceFence: l.raise,
		Release: func(context.Context) error { return nil },
	})
	if l.granted != nil {
		l.granted(h)
	}
	return h, nil
}

// claimed is the traced step right before a sale reads the row, and after it stores its fence.
const claimed api.Step = "claimed"

// TestFencedSalesInEveryOrder tries all interleavings of the statements of some sales, behind a
// lock that excludes no request. With fences, no interleaving may lose an update, even if the
// backend grants the same fence twice. Without fences, some interleavings must lose an update.
func TestFencedSalesInEveryOrder(t *testing.T) {
	t.Parallel()
	db, _ := database(t, 8)
	if err := db.Callback().Query().Before("gorm:query").Register("stop", func(tx *gorm.DB) {
		locks.Trace(tx.Statement.Context, claimed, "", "", 0)
	}); err != nil {
		t.Fatal(err)
	}
	ledger := stock.NewLedger(db)
	above := func(_ context.Context, floor int64) (int64, error) { return floor + 1, nil }
	for _, test := range []struct {
		name   string
		sales  int
		fences []int64
		raise  func(context.Context, int64) (int64, error)
		fenced bool
	}{
		{"without a fence", 2, []int64{1, 2}, nil, false},
		{"two fences", 2, []int64{1, 2}, nil, true},
		{"three fences", 3, []int64{1, 2, 3}, nil, true},
		{"one fence twice", 2, []int64{1, 1}, nil, true},
		{"one fence twice, and the lock gives fresh ones", 2, []int64{1, 1}, above, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			lock := open{raise: test.raise, fence: func(owner string) int64 { return test.fences[int(owner[0]-'a')] }}
			strategy := locks.Guard(lock, ledger)
			orders, losses := 0, 0
			for next := []int{}; next != nil; {
				if err := ledger.Reset(t.Context(), 1, 10); err != nil {
					t.Fatal(err)
				}
				ran, sold := play(t, strategy, test.sales, test.fenced, next)
				item, err := ledger.ReadPrimary(context.Background(), 1)
				if err != nil {
					t.Fatal(err)
				}
				orders++
				if taken := 10 - item.Count; sold != taken {
					losses++
					if test.fenced {
						t.Errorf("order %v: %d sold, %d taken from stock", ran.choices, sold, taken)
					}
				}
				if sold == 0 {
					t.Errorf("order %v: nobody sold anything", ran.choices)
				}
				next = ran.following()
			}
			t.Logf("%d orders, %d lost an update", orders, losses)
			if !test.fenced && losses == 0 {
				t.Errorf("none of %d orders loses an update: this test can't fail", orders)
			}
		})
	}
}

// TestLostWhileWaitingForAConnection checks that a holder writes nothing if it loses its lock
// while it waits for a connection of the pool.
func TestLostWhileWaitingForAConnection(t *testing.T) {
	t.Parallel()
	db, pool := database(t, 1)
	ledger := stock.NewLedger(db)
	if err := ledger.Reset(t.Context(), 1, 10); err != nil {
		t.Fatal(err)
	}
	holds, taken, waits := make(chan *locks.Lock, 1), make(chan *sql.Conn, 1), int64(0)
	lock := open{fence: func(string) int64 { return 1 }, granted: func(h *locks.Lock) { holds <- h }}
	ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == api.Read {
			conn, err := pool.Conn(context.Background())
			if err != nil {
				t.Error(err)
			}
			waits = pool.Stats().WaitCount
			taken <- conn
		}
	})
	sale := make(chan error, 1)
	go func() {
		_, err := locks.Guard(lock, ledger).Deduct(ctx, stock.Order{Product: 1, Qty: 1, Owner: "a"})
		sale <- err
	}()
	conn := <-taken
	for pool.Stats().WaitCount == waits {
		time.Sleep(time.Millisecond)
	}
	(<-holds).MarkLost(errors.New("expired"))
	_ = conn.Close()
	if err := <-sale; !errors.Is(err, locks.ErrLost) {
		t.Errorf("want a lost lock, got %v", err)
	}
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 10 {
		t.Errorf("%d are left, %v, want 10", item.Count, err)
	}
}

// database returns a migrated database, and its pool of at most conns connections.
func database(t *testing.T, conns int) (*gorm.DB, *sql.DB) {
	t.Helper()
	r := rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true}))
	db, err := stock.Open(r.Addresses().MySQL, 2) // a migration needs two connections
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
	pool.SetMaxOpenConns(conns)
	return db, pool
}

// order is one interleaving. For each choice of play, choices has the index of the chosen sale, and
// options the number of sales to choose from.
type order struct{ choices, options []int }

// following returns the first choices of the next interleaving, or nil if this was the last one.
func (o order) following() []int {
	for i := len(o.choices) - 1; i >= 0; i-- {
		if o.choices[i]+1 < o.options[i] {
			return append(slices.Clone(o.choices[:i]), o.choices[i]+1)
		}
	}
	return nil
}

// play starts all sales, but lets only one sale at a time run to its next traced step. begin has
// the first choices; after these, the first unfinished sale runs. play returns the interleaving and
// the number of successful sales.
func play(t *testing.T, strategy locks.Strategy, sales int, fenced bool, begin []int) (ran order, sold int) {
	t.Helper()
	type sale struct {
		stopped chan bool // true: the sale is at its next statement; false: it has ended
		goOn    chan struct{}
		err     error
	}
	waiting := make([]*sale, sales)
	for i := range waiting {
		s := &sale{stopped: make(chan bool), goOn: make(chan struct{})}
		waiting[i] = s
		ctx := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
			if e.Step == api.Granted || e.Step == claimed || e.Step == api.Writing {
				s.stopped <- true
				<-s.goOn
			}
		})
		go func() {
			_, s.err = strategy.Deduct(ctx, stock.Order{Product: 1, Qty: 1, Owner: fmt.Sprintf("%c", 'a'+i), Fenced: fenced, Wait: time.Minute})
			s.stopped <- false
		}()
		<-s.stopped // the lock was granted
	}
	all := slices.Clone(waiting)
	for point := 0; len(waiting) > 0; point++ {
		choice := 0
		if point < len(begin) {
			choice = begin[point]
		}
		ran.choices, ran.options = append(ran.choices, choice), append(ran.options, len(waiting))
		s := waiting[choice]
		s.goOn <- struct{}{}
		if !<-s.stopped {
			waiting = slices.Delete(waiting, choice, choice+1)
		}
	}
	for _, s := range all {
		if s.err == nil {
			sold++
		}
	}
	return ran, sold
}
