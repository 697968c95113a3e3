package explore

import (
	"runtime/debug"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	logging.Disable()        // the client also returns the errors
	debug.SetGCPercent(1000) // as the command does: a schedule leaves a lot, and keeps little
	rigtest.MainWith(m, rigtest.Guest(rig.Config{MySQL: true}), func(r *rig.Rig) { servers = r })
}

// migrated creates the tables in the database of the test servers, and returns its address.
func migrated(t *testing.T) string {
	t.Helper()
	db, err := stock.Open(servers.Addresses().MySQL, 2)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return servers.Addresses().MySQL
}
