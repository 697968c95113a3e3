package handlers_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// storedEntries counts the keys in Redis, the nodes in ZooKeeper and the rows in MySQL.
func storedEntries(t *testing.T) map[string]int {
	t.Helper()
	at, n := testLab.Addresses(), map[string]int{}
	for _, addr := range at.Redis {
		options, err := redis.ParseURL(addr)
		if err != nil {
			t.Fatal(err)
		}
		c := redis.NewClient(options)
		n[addr] = int(c.DBSize(t.Context()).Val())
		_ = c.Close()
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Zookeeper[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprint(conn, "mntr\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "zk_znode_count\t"); ok {
			var nodes int
			_, _ = fmt.Sscan(text, &nodes)
			n["zookeeper"] = nodes
		}
	}
	db, err := sql.Open("mysql", at.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tables, err := db.QueryContext(t.Context(), "SHOW TABLES")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tables.Close() }()
	for tables.Next() {
		var table string
		var rows int
		if err := tables.Scan(&table); err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		n[table] = rows
	}
	if err := tables.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUnknownProductLeavesNothing checks that the sale of an unknown product adds no entry to
// Redis, ZooKeeper or MySQL.
func TestUnknownProductLeavesNothing(t *testing.T) {
	restock(t, 5)
	cards, err := labClients(t).Target.Cards(t.Context())
	must(t, err)
	before := storedEntries(t)
	if before["zookeeper"] == 0 || len(before) < 4 {
		t.Fatalf("nothing was counted: %v", before)
	}
	for i, card := range cards {
		if r := buy(t, card.ID, fmt.Sprintf("product=%d", 770_000+i)); r.HTTP != http.StatusNotFound || r.Outcome != "unknown_product" {
			t.Errorf("%s: %+v", card.ID, r)
		}
	}
	for i, granularity := range []string{"none", "order", "each"} {
		if r := ask(t, http.MethodPost, testLab.Addresses().Target, fmt.Sprintf("/goods/%d/orders?grain=%s", 780_000+i, granularity)); r.HTTP != http.StatusNotFound {
			t.Errorf("granularity %s: %+v", granularity, r)
		}
	}
	for where, n := range storedEntries(t) {
		if n > before[where] {
			t.Errorf("%s: %d entries before, now %d", where, before[where], n)
		}
	}
}
