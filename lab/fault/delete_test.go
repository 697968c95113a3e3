package fault_test

import (
	"database/sql"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/lab/backend"
	"oversell/lab/fault"
)

// TestDeleteLocksOfRedis checks that no key stays, and that an unknown service is an error.
func TestDeleteLocksOfRedis(t *testing.T) {
	for _, name := range []string{"redis-1", "redis-2"} {
		must(t, client(t, server(t, name).Addr()).Set(t.Context(), "lock", "holder", 0).Err())
	}
	inject(t, fault.DeleteLocks(lab, "redis"))
	for _, name := range []string{"redis-1", "redis-2"} {
		if n := client(t, server(t, name).Addr()).DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%s still has %d keys", name, n)
		}
	}
	if _, err := fault.DeleteLocks(lab, "nginx").Inject(t.Context()); err == nil {
		t.Error("a service without locks gives no error")
	}
}

// TestDeleteLocksOfZooKeeper checks that only the nodes of sessions are deleted.
func TestDeleteLocksOfZooKeeper(t *testing.T) {
	holder, _, err := zk.Connect(lab.Addresses().Zookeeper, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(holder.Close)
	for path, flags := range map[string]int32{"/folder": 0, "/lock": zk.FlagEphemeral} {
		_, err := holder.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
		must(t, err)
	}
	inject(t, fault.DeleteLocks(lab, "zookeeper"))
	for path, want := range map[string]bool{"/folder": true, "/lock": false} {
		if exists, _, err := holder.Exists(path); err != nil || exists != want {
			t.Errorf("%s exists: %t, want %t: %v", path, exists, want, err)
		}
	}
	must(t, holder.Delete("/folder", -1))
}

// TestDeleteLocksOfEtcd also lists the leases of keys, and revokes one.
func TestDeleteLocksOfEtcd(t *testing.T) {
	addr := lab.Addresses().Etcd[0]
	post := func(path, body string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(body))
		must(t, err)
		answer, err := http.DefaultClient.Do(request)
		must(t, err)
		must(t, answer.Body.Close())
	}
	expect := func(want ...string) {
		t.Helper()
		if leases, err := backend.EtcdLeases(t.Context(), addr); err != nil || !slices.Equal(leases, want) {
			t.Errorf("the leases are %v, want %v: %v", leases, want, err)
		}
	}
	for _, id := range []string{"11", "12"} {
		post("/v3/lease/grant", `{"ID": "`+id+`", "TTL": "60"}`)
		post("/v3/kv/put", `{"key": "bG9jaw`+id+`", "lease": "`+id+`"}`)
	}
	expect("11", "12")
	must(t, backend.RevokeEtcdLease(t.Context(), addr, "11"))
	expect("12")
	inject(t, fault.DeleteLocks(lab, "etcd"))
	expect()
}

// TestDeleteLocksOfMySQL checks that rows of another program are deleted, and the stock is not. Without
// such rows that no transaction has locked, the connections end, and with them their locks.
func TestDeleteLocksOfMySQL(t *testing.T) {
	db, err := sql.Open("mysql", lab.Addresses().MySQL)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	holder, err := db.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = holder.Close() })
	execute := func(statement string) error {
		_, err := holder.ExecContext(t.Context(), statement)
		return err
	}
	must(t, execute("CREATE TABLE IF NOT EXISTS leases (name VARCHAR(9))"))
	must(t, execute("INSERT INTO leases VALUES ('held')"))
	must(t, execute("CREATE TABLE IF NOT EXISTS db_goods (name VARCHAR(9))"))
	must(t, execute("INSERT INTO db_goods VALUES ('kept')"))
	rows := func(table string) (n int) {
		must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n))
		return n
	}
	inject(t, fault.DeleteLocks(lab, "mysql"))
	if locks, goods := rows("leases"), rows("db_goods"); locks != 0 || goods != 1 {
		t.Errorf("%d rows in the lock's table and %d in the other, want 0 and 1", locks, goods)
	}
	must(t, execute("DO GET_LOCK('held', 0)"))
	must(t, execute("INSERT INTO leases VALUES ('locked')"))
	must(t, execute("BEGIN"))
	must(t, execute("DELETE FROM leases"))
	inject(t, fault.DeleteLocks(lab, "mysql"))
	if execute("DO 1") == nil {
		t.Error("the connection that holds a named lock and a row lock does not end")
	}
	for _, table := range []string{"leases", "db_goods"} {
		_, err := db.ExecContext(t.Context(), "DROP TABLE "+table)
		must(t, err)
	}
}
