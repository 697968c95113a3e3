package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
	"oversell/stock"
)

var servers *rig.Rig

// scopeEnv is the environment variable that makes the test binary run one search, and write its result to stdout.
// Its value is a Scope in JSON. TestMutations builds the binary with a wrong strategy.
const scopeEnv = "OVERSELL_EXPLORE_SCOPE"

func TestMain(m *testing.M) {
	logging.Disable()        // the client also returns the errors
	debug.SetGCPercent(1000) // as the command does: a schedule leaves a lot, and keeps little
	if scope := os.Getenv(scopeEnv); scope != "" {
		if err := searchAlone(scope, os.Getenv(mysqlEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	rigtest.MainWith(m, rigtest.Guest(rig.Config{MySQL: true}), func(r *rig.Rig) { servers = r })
}

// mysqlEnv is the environment variable with the data source name of the real MySQL for scopeEnv.
const mysqlEnv = "OVERSELL_EXPLORE_MYSQL"

func searchAlone(scope, mysql string) error {
	t := Scope{MySQL: mysql}
	if err := json.Unmarshal([]byte(scope), &t); err != nil {
		return err
	}
	r, err := Search(context.Background(), t, nil)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
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
