package stock_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// TestReadAt checks that a plain SELECT on a delayed follower returns an old count. Transactions,
// locking reads and ReadPrimary must return the new count from the primary.
func TestReadAt(t *testing.T) {
	rigtest.Nightly(t, "TestEveryHazard of ./lab/experiment, with the hazard stale-read")
	r := rigtest.Start(t, rig.Config{MySQL: true, Database: rig.DelayedReads})
	db, err := stock.Open(r.Addresses().MySQL, 4)
	must(t, err)
	reads, err := stock.ReadAt(db, r.Addresses().Reads, 4)
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { _, _ = reads.Close(), pool.Close() })
	must(t, migrations.Up(t.Context(), pool))
	ledger := stock.NewLedger(db)
	must(t, ledger.Reset(t.Context(), 1, 10))
	must(t, r.AwaitEven(t.Context()))

	release, err := r.HoldReplication(t.Context())
	must(t, err)
	before, err := ledger.ReadPrimary(t.Context(), 1)
	must(t, err)
	must(t, ledger.Write(t.Context(), before, 9))
	must(t, db.Exec("INSERT INTO db_lock (lock_name) VALUES ('a')").Error)
	take := func(db *gorm.DB) (stock.Item, error) {
		var item stock.Item
		return item, db.Take(&item, 1).Error
	}
	for name, ask := range map[string]func() (stock.Item, error){
		"primary":    func() (stock.Item, error) { return ledger.ReadPrimary(t.Context(), 1) },
		"for update": func() (stock.Item, error) { return take(db.Clauses(clause.Locking{Strength: "UPDATE"})) },
		"transaction": func() (item stock.Item, err error) {
			err = db.Transaction(func(tx *gorm.DB) error { item, err = take(tx); return err })
			return item, err
		},
	} {
		if item, err := ask(); err != nil || item.Count != 9 {
			t.Errorf("%s: %d, %v, want 9", name, item.Count, err)
		}
	}
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 10 {
		t.Errorf("plain, while the follower lags: %d, %v, want 10", item.Count, err)
	}
	var locks int
	if err := db.Raw("SELECT COUNT(*) FROM db_lock WHERE lock_name = 'a'").Scan(&locks).Error; err != nil || locks != 1 {
		t.Errorf("%d locks, %v, want the one on the primary", locks, err)
	}

	must(t, release(t.Context()))
	must(t, r.AwaitEven(t.Context()))
	if item, err := ledger.Read(t.Context(), 1); err != nil || item.Count != 9 {
		t.Errorf("plain, when they are even: %d, %v, want 9", item.Count, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
