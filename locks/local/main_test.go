package local

import (
	"testing"

	"gorm.io/gorm"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, rigtest.Guest(rig.Config{MySQL: true}), func(r *rig.Rig) { servers = r })
}

// database migrates the database of the test servers, and returns a connection pool.
func database(t *testing.T) *gorm.DB {
	t.Helper()
	db, err := stock.Open(servers.Addresses().MySQL, 8)
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
	return db
}

// newProduct adds a product with the given count, and returns its id.
func newProduct(t *testing.T, db *gorm.DB, count int) int64 {
	t.Helper()
	item := stock.Item{ProductCode: "local", StockCode: "001", Count: count}
	if err := db.Create(&item).Error; err != nil {
		t.Fatal(err)
	}
	return item.ID
}
