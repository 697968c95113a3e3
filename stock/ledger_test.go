package stock_test

import (
	"errors"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

// TestWriteWithoutConnection: a write that got no connection was not sent, and whoever
// wanted it is told so; the row has not changed.
func TestWriteWithoutConnection(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{MySQL: true})
	db, err := stock.Open(r.Addresses().MySQL, 2)
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	must(t, migrations.Up(t.Context(), pool))
	ledger := stock.NewLedger(db)
	must(t, ledger.Reset(t.Context(), 1, 10))

	one, err := pool.Conn(t.Context())
	must(t, err)
	other, err := pool.Conn(t.Context())
	must(t, err)
	if err := ledger.Write(t.Context(), 1, 9); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("want unavailable, got %v", err)
	}
	must(t, errors.Join(one.Close(), other.Close()))
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 10 {
		t.Errorf("%d are left, %v, want 10", item.Count, err)
	}
	must(t, ledger.Write(t.Context(), 1, 9))
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 9 {
		t.Errorf("%d are left, %v, want 9", item.Count, err)
	}
}
