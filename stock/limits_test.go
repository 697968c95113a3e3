package stock_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

// TestFullServer sells through pools that may open more connections than the server accepts from the user, or at all. Each
// sale waits for a connection. Then the server accepts none.
func TestFullServer(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{MySQL: true})
	server, err := r.Server("mysql")
	must(t, err)
	execute := func(statement string) {
		t.Helper()
		must(t, backend.ExecuteMySQL(t.Context(), server.AdminDSN(), statement))
	}
	var pools []*gorm.DB
	for range 3 {
		db, err := stock.Open(r.Addresses().MySQL, 32)
		must(t, err)
		pool, err := db.DB()
		must(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		pools = append(pools, db)
	}
	pool, err := pools[0].DB()
	must(t, err)
	must(t, migrations.Up(t.Context(), pool))
	must(t, stock.NewLedger(pools[0]).Add(t.Context(), 4711))
	// max_connections comes first: when the pools have grown past it, an administrator cannot connect either.
	for _, change := range [][2]string{
		{"SET GLOBAL max_connections = 15", "SET GLOBAL max_connections = 200"},
		{"ALTER USER 'oversell'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 15", "ALTER USER 'oversell'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 0"},
	} {
		limit, more := change[0], change[1]
		execute(limit)
		var clients sync.WaitGroup
		for i := range 100 {
			clients.Go(func() {
				db := pools[i%len(pools)]
				for range 10 {
					err := stock.Connection(t.Context(), db, func(conn *gorm.DB) error {
						return conn.Exec("UPDATE db_stock SET count = count + 1 WHERE id = 4711").Error
					})
					if err != nil {
						t.Errorf("%s: %v", limit, err)
					}
				}
			})
		}
		clients.Wait()
		execute(more)
	}
	item, err := stock.NewLedger(pools[0]).Read(t.Context(), 4711)
	if err != nil || item.Count != 2000 {
		t.Errorf("%d updates, %v, want 2000", item.Count, err)
	}
	execute("ALTER USER 'oversell'@'127.0.0.1' WITH MAX_CONNECTIONS_PER_HOUR 1")
	for range 2 { // the second connection is refused
		late, openErr := stock.Open(r.Addresses().MySQL, 32)
		must(t, openErr)
		_, err = stock.NewLedger(late).Read(t.Context(), 4711)
	}
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) || answer.Number != 1226 {
		t.Errorf("a server that accepts no connection of the user: %v, want error 1226", err)
	}
}
