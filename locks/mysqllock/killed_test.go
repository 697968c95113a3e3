package mysqllock

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestKilledWhileWaiting ends the statement or the connection of a request that waits for its lock, as an administrator
// or a limit of the server does. Neither this request nor those behind it in the replica may fail.
func TestKilledWhileWaiting(t *testing.T) {
	t.Parallel()
	db := database(t, "")
	lockRow := func(t *testing.T, product int64) (free func()) {
		t.Helper()
		return lockRowOf(t, db, "SELECT id FROM db_stock WHERE id = ? FOR UPDATE", product)
	}
	for name, test := range map[string]struct {
		strategy func(*gorm.DB) locks.Strategy
		lock     func(*testing.T, int64) func()
		waiting  string // the beginning of the statement that waits
	}{
		"get-lock": {func(db *gorm.DB) locks.Strategy { return locks.Guard(GetLock(db), stock.NewLedger(db)) }, func(t *testing.T, product int64) func() {
			t.Helper()
			h := acquire(t, GetLock(db), request(api.Key(product), "holder", 0, 0))
			return func() { _ = h.Release(t.Context()) }
		}, "SELECT GET_LOCK"},
		"for-update": {ForUpdate, lockRow, "SELECT * FROM `db_stock`"},
		"share-mode": {ShareMode, lockRow, "SELECT * FROM db_stock"},
		"atomic":     {Atomic, lockRow, "UPDATE db_stock"},
	} {
		for _, kill := range []string{"KILL QUERY", "KILL", "limit of time"} {
			if name == "atomic" && kill != "limit of time" {
				continue // it is unknown whether the killed UPDATE was committed
			}
			if name == "share-mode" && kill == "limit of time" {
				continue // slow: its transactions also deadlock
			}
			t.Run(name+"/"+kill, func(t *testing.T) {
				t.Parallel()
				settings, limited := map[string]string{"innodb_lock_wait_timeout": "50"}, kill == "limit of time"
				if limited {
					settings[limitOfTime(t, db)] = "1"
				}
				own := connect(t, 20, func(cfg *mysql.Config) { cfg.Params = settings })
				s, product := test.strategy(own), newProduct(t, db, 100)
				free := test.lock(t, product)
				var waiters sync.WaitGroup
				for i := range 4 {
					waiters.Go(func() {
						if _, err := s.Deduct(t.Context(), stock.Order{Product: product, Qty: 1, Owner: fmt.Sprint(i), Wait: time.Minute}); err != nil {
							t.Errorf("waiter %d: %v", i, err)
						}
					})
				}
				for range 3 {
					var id int64
					before := exceeded(t, db)
					soon(t, "a statement waits", func() bool {
						return db.Raw("SELECT id FROM information_schema.processlist WHERE info LIKE ? LIMIT 1", fmt.Sprintf("%s%%%d%%", test.waiting, product)).Row().Scan(&id) == nil
					})
					if limited {
						soon(t, "the limit has ended a statement", func() bool { return exceeded(t, db) > before })
					} else {
						_ = db.Exec(fmt.Sprintf("%s %d", kill, id)).Error // the statement may have just ended
					}
				}
				free()
				waiters.Wait()
				if item, err := stock.NewLedger(db).Read(t.Context(), product); err != nil || item.Count != 96 {
					t.Errorf("%d are left, %v, want 96", item.Count, err)
				}
			})
		}
	}
}

// limitOfTime returns MariaDB's variable that limits the time of a statement, in seconds.
func limitOfTime(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var version string
	if err := db.Raw("SELECT VERSION()").Row().Scan(&version); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(version, "MariaDB") {
		t.Skip("MySQL has no limit for statements that lock")
	}
	return "max_statement_time"
}

// exceeded returns how many statements the limit has ended.
func exceeded(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	if err := db.Raw(`SHOW GLOBAL STATUS LIKE 'Max\_%\_time\_exceeded'`).Row().Scan(new(string), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
