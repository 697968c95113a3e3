package stock_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

// tenPieces returns a ledger with two connections. Product 1 has a stock of 10.
func tenPieces(t *testing.T) (*stock.Ledger, *sql.DB) {
	t.Helper()
	r := rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true}))
	db, err := stock.Open(r.Addresses().MySQL, 2)
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	must(t, migrations.Up(t.Context(), pool))
	ledger := stock.NewLedger(db)
	must(t, ledger.Reset(t.Context(), 1, 10))
	return ledger, pool
}

// taken takes both connections of the pool. giveBack returns them to the pool.
func taken(t *testing.T, pool *sql.DB) (giveBack func()) {
	t.Helper()
	one, err := pool.Conn(t.Context())
	must(t, err)
	other, err := pool.Conn(t.Context())
	must(t, err)
	return func() { must(t, errors.Join(one.Close(), other.Close())) }
}

// TestWriteWithoutConnection checks that a write without a free connection is not sent. The
// returned error must be ErrUnavailable.
func TestWriteWithoutConnection(t *testing.T) {
	t.Parallel()
	ledger, pool := tenPieces(t)

	read, err := ledger.Read(t.Context(), 1)
	must(t, err)
	giveBack := taken(t, pool)
	if err := ledger.Write(t.Context(), read, 9); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("want unavailable, got %v", err)
	}
	giveBack()
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 10 {
		t.Errorf("%d are left, %v, want 10", item.Count, err)
	}
	must(t, ledger.Write(t.Context(), read, 9))
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 9 {
		t.Errorf("%d are left, %v, want 9", item.Count, err)
	}
}

// TestTransactionWithoutConnection checks that a transaction that gets no connection in time is ErrUnavailable:
// nobody has cancelled it.
func TestTransactionWithoutConnection(t *testing.T) {
	t.Parallel()
	_, pool := tenPieces(t)
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: pool}))
	must(t, err)
	recharges := stock.NewRecharges(db)
	must(t, recharges.Reset(t.Context(), 1, 1, 500))
	order, err := recharges.Read(t.Context(), 1)
	must(t, err)
	credit := func() error {
		return recharges.Credit(t.Context(), order, stock.Proof{Version: true}, func() error { return nil })
	}
	giveBack := taken(t, pool)
	if err := credit(); !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrCancelled) {
		t.Errorf("want unavailable, got %v", err)
	}
	giveBack()
	must(t, credit())
}

// TestLateWrite checks that a write completes and returns its result even if the caller's context
// has ended. The context of a holder ends when the lock is lost.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	ledger, _ := tenPieces(t)
	item, err := ledger.Claim(t.Context(), 1, 8)
	must(t, err)
	w, err := ledger.Connect(t.Context())
	must(t, err)
	defer w.Close()
	late, hangUp := context.WithCancel(t.Context())
	hangUp()
	must(t, w.WriteFenced(late, item, 9))
	if err := w.WriteFenced(late, stock.Item{ID: 1, Version: item.Version, Fence: 7}, 7); !errors.Is(err, stock.ErrFenced) {
		t.Errorf("want fenced off, got %v", err)
	}
	if err := w.WriteFenced(late, stock.Item{ID: 999, Fence: 7}, 7); !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("want an unknown product, got %v", err)
	}
	must(t, ledger.Reset(t.Context(), 1, 9))
	now, err := ledger.Claim(t.Context(), 1, 8)
	must(t, err)
	for name, write := range map[string]func() error{
		"fenced":   func() error { return w.WriteFenced(late, item, 7) },
		"unfenced": func() error { return w.Write(late, item, 7) },
	} {
		if err := write(); !errors.Is(err, stock.ErrConflict) {
			t.Errorf("%s, for the item of before the reset: %v", name, err)
		}
	}
	if now.Version <= item.Version {
		t.Errorf("version %d after the reset of version %d", now.Version, item.Version)
	}
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 9 || item.Fence != 8 {
		t.Errorf("%+v, %v, want 9 left by fence 8", item, err)
	}
}

// TestClaim checks that a fence can be registered only once, and that a lower fence is rejected.
func TestClaim(t *testing.T) {
	t.Parallel()
	ledger, _ := tenPieces(t)
	for _, test := range []struct {
		fence, row int64
		refused    bool
	}{{fence: 5, row: 5}, {fence: 5, row: 5, refused: true}, {fence: 4, row: 5, refused: true}, {fence: 6, row: 6}} {
		item, err := ledger.Claim(t.Context(), 1, test.fence)
		if errors.Is(err, stock.ErrFenced) != test.refused || err != nil && !test.refused || item.Fence != test.row || item.Count != 10 {
			t.Errorf("claim with %d: %+v, %v; want fence %d in the row, refused: %v", test.fence, item, err, test.row, test.refused)
		}
	}
	if _, err := ledger.Claim(t.Context(), 999, 9); !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("want an unknown product, got %v", err)
	}
}

// TestNoConnectionForALostLock checks that the wait for a connection ends when the lock is lost.
func TestNoConnectionForALostLock(t *testing.T) {
	t.Parallel()
	ledger, pool := tenPieces(t)
	giveBack := taken(t, pool)
	holder, lose := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() {
		_, err := ledger.Connect(holder)
		refused <- err
	}()
	for pool.Stats().WaitCount == 0 {
		time.Sleep(time.Millisecond)
	}
	lose()
	if err := <-refused; !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("want cancelled, got %v", err)
	}
	giveBack()
}

// TestSessionVariables uses a server whose sessions begin with other values. Every variable on which the code relies must
// be set, and what was answered must be committed.
func TestSessionVariables(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{MySQL: true})
	server, err := r.Server("mysql")
	must(t, err)
	for _, set := range []string{
		"autocommit = 0", "completion_type = 'CHAIN'", "max_join_size = 1", "sql_big_selects = 0", "sql_mode = 'ANSI_QUOTES'",
		"sql_safe_updates = 1", "sql_select_limit = 1", "time_zone = '+05:30'", "unique_checks = 0", "TRANSACTION READ ONLY",
		"TRANSACTION ISOLATION LEVEL SERIALIZABLE",
	} {
		must(t, backend.ExecuteMySQL(t.Context(), server.AdminDSN(), "SET GLOBAL "+set))
	}
	dsn := r.Addresses().MySQL
	own, err := stock.Open(dsn, 2)
	must(t, err)
	resets, err := stock.OpenForResets(dsn)
	must(t, err)
	for name, db := range map[string]*gorm.DB{"sales": own, "resets": resets} {
		pool, err := db.DB()
		must(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		var got, variable, isolation string
		must(t, db.Raw(`SELECT CONCAT_WS(' ', @@autocommit = 1, @@completion_type, @@sql_big_selects = 1, @@sql_mode, @@sql_safe_updates = 1,
			@@sql_select_limit, @@time_zone, @@unique_checks = 1)`).Row().Scan(&got))
		must(t, db.Raw("SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')").Row().Scan(&variable, &isolation))
		if want := "1 NO_CHAIN 1 STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION 0 18446744073709551615 +00:00 1"; got != want || isolation != "REPEATABLE-READ" {
			t.Errorf("%s: %s, isolation %s", name, got, isolation)
		}
	}
	pool, err := own.DB()
	must(t, err)
	must(t, migrations.Up(t.Context(), pool))
	pool.SetMaxOpenConns(1) // one session for all that follows
	ledger := stock.NewLedger(own)
	must(t, ledger.Add(t.Context(), 4711))
	must(t, ledger.Reset(t.Context(), 4711, 5)) // a transaction
	must(t, ledger.Add(t.Context(), 4712))
	for _, product := range []int64{4711, 4712} {
		if _, err := stock.NewLedger(resets).Read(t.Context(), product); err != nil {
			t.Errorf("another connection does not see what was answered: %v", err)
		}
	}
}
