package stock

import (
	"database/sql/driver"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// TestAddresses checks the hosts of a DSN, also after FormatDSN.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"tcp(a:1)":                   "a:1",
		"tcp(a)":                     "a:3306",
		"tcp(a:1,b:2,c:3)":           "a:1 b:2 c:3",
		"tcp(a, b)":                  "a:3306 b:3306",
		"tcp(a:1,b)":                 "a:1 b:3306",
		"tcp(a,b:2)":                 "a:3306 b:2",
		"tcp([::1]:1,[::2]:2)":       "[::1]:1 [::2]:2",
		"tcp([::1]:3306,[::2]:3306)": "[::1]:3306 [::2]:3306",
		"tcp([::1],[::2])":           "[::1]:3306 [::2]:3306",
		"unix(/tmp/a,b)":             "/tmp/a,b",
	} {
		dsn := "user:word@" + in + "/oversell?tls=true"
		for range 2 {
			cfg, err := parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(addresses(cfg), " "); got != want {
				t.Errorf("%s has the hosts %s, want %s", dsn, got, want)
			}
			dsn = cfg.FormatDSN()
		}
	}
}

// TestOrder checks which node is tried first, and which connections of the pool are given up.
func TestOrder(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := &galera{nodes: make([]driver.Connector, 3), failed: make([]time.Time, 3)}
	order := func(want ...int) {
		t.Helper()
		if got := g.order(now); !slices.Equal(got, want) {
			t.Errorf("the order is %v, want %v", got, want)
		}
	}
	keeps := func(node int, want bool) {
		t.Helper()
		if got := g.keeps(node, now); got != want {
			t.Errorf("a connection to node %d is kept: %t, want %t", node, got, want)
		}
	}
	order(0, 1, 2)
	keeps(0, true)
	keeps(1, false) // all are at the first node

	g.failed[0] = now
	order(1, 2, 0)
	keeps(0, false)
	g.use(1)
	keeps(1, true)
	keeps(0, false)

	now = now.Add(nodePause)
	order(0, 1, 2)
	keeps(1, false) // this one, so that a new connection tries the first node again
	keeps(1, true)  // and no other one for some time

	g.note(1, &mysql.MySQLError{Number: 1213})
	keeps(1, true)
	g.note(1, &mysql.MySQLError{Number: notReady})
	keeps(1, false)
}
