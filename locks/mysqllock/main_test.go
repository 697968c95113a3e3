package mysqllock

import (
	"cmp"
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/migrations"
	"oversell/stock"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, rigtest.Guest(rig.Config{MySQL: true}), func(r *rig.Rig) { servers = r })
}

// database returns a pool of connections to the test database, and creates its tables. If addr is
// not "", the connections go to the proxy at addr instead of to the server.
func database(t *testing.T, addr string) *gorm.DB {
	t.Helper()
	db := connect(t, 8, func(cfg *mysql.Config) { cfg.Addr = cmp.Or(addr, cfg.Addr) })
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return db
}

// databaseAt returns a pool of connections for which the server's clock has jumped, and then stands still.
func databaseAt(t *testing.T, jump time.Duration) *gorm.DB {
	t.Helper()
	now := strconv.FormatInt(time.Now().Add(jump).Unix(), 10)
	return connect(t, 8, func(cfg *mysql.Config) { cfg.Params = map[string]string{"timestamp": now} })
}

func connect(t *testing.T, conns int, change func(*mysql.Config)) *gorm.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	change(cfg)
	db, err := stock.Open(cfg.FormatDSN(), conns)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return db
}

// address returns the host:port of the server.
func address(t *testing.T) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Addr
}

// newProduct adds a product with the given count, and returns its id.
func newProduct(t *testing.T, db *gorm.DB, count int) int64 {
	t.Helper()
	item := stock.Item{ProductCode: "mysqllock", StockCode: "001", Count: count}
	if err := db.Create(&item).Error; err != nil {
		t.Fatal(err)
	}
	return item.ID
}

// lockRowOf begins a transaction with query, a locking read. unlock ends the transaction.
func lockRowOf(t *testing.T, db *gorm.DB, query string, id any) (unlock func()) {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), query, id); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// newKey returns a key that no other test uses.
func newKey() string { return "stock:" + uuid.NewString() }

func request(key, owner string, wait, lease time.Duration) locks.Request {
	return locks.Request{Key: key, Owner: owner, Wait: wait, Lease: lease}
}

func acquire(t *testing.T, l locks.Locker, r locks.Request) *locks.Lock {
	t.Helper()
	h, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

// soon waits until is() returns true. It fails the test after 20 s.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("this did not happen within 20 s: %s", what)
		}
	}
}
