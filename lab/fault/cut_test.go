package fault_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"oversell/lab/fault"
)

func TestCut(t *testing.T) {
	l := link(t, "replica-1", "redis-1")
	direct := client(t, server(t, "redis-1").Addr())
	old := client(t, l.Addr())
	if !answers(t, old) || !answers(t, direct) {
		t.Fatal("no answer before the fault")
	}
	heal := inject(t, fault.Cut(l))
	young := client(t, l.Addr())
	if !silent(t, old) || !silent(t, young) {
		t.Error("the link is not cut, or the client got an error")
	}
	if !answers(t, direct) || status(t, "replica-2", "/readyz") != 200 {
		t.Error("others don't reach the backend any more")
	}
	if got := status(t, "replica-1", "/readyz"); got == 200 {
		t.Error("the replica is ready without a backend")
	}
	must(t, direct.Del(t.Context(), "swallowed").Err())
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	if old.Set(ctx, "swallowed", 1, 0).Err() == nil {
		t.Error("a write is acknowledged")
	}
	heal()
	heal()
	eventually(t, "no answer after the heal", func() bool { return answers(t, client(t, l.Addr())) })
	if n := direct.Exists(t.Context(), "swallowed").Val(); n != 0 {
		t.Error("what was swallowed has arrived")
	}
	eventually(t, "the replica does not get ready", func() bool { return status(t, "replica-1", "/readyz") == 200 })
}

// TestCutKeepsRowLocked checks that a client that disconnects over a cut link keeps its row lock:
// the end of the connection does not reach MySQL.
func TestCutKeepsRowLocked(t *testing.T) {
	l := link(t, "replica-1", "mysql")
	direct, err := sql.Open("mysql", lab.Addresses().MySQL+"?innodb_lock_wait_timeout=1")
	must(t, err)
	defer direct.Close()
	_, err = direct.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS held (id INT PRIMARY KEY)")
	must(t, err)
	_, err = direct.ExecContext(t.Context(), "REPLACE INTO held VALUES (1)")
	must(t, err)
	free := func() bool { // takes a second at most
		var id int
		return direct.QueryRowContext(t.Context(), "SELECT id FROM held WHERE id = 1 FOR UPDATE").Scan(&id) == nil
	}

	over, err := sql.Open("mysql", strings.Replace(lab.Addresses().MySQL, server(t, "mysql").Addr(), l.Addr(), 1))
	must(t, err)
	defer over.Close()
	tx, err := over.BeginTx(t.Context(), nil)
	must(t, err)
	var id int
	must(t, tx.QueryRowContext(t.Context(), "SELECT id FROM held WHERE id = 1 FOR UPDATE").Scan(&id))
	heal := inject(t, fault.Cut(l))
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	if tx.QueryRowContext(ctx, "SELECT 1").Scan(&id) == nil { // the driver disconnects
		t.Error("an answer over the cut link")
	}
	if free() || l.Dropped() == 0 {
		t.Error("the end of the connection arrived")
	}
	heal()
	eventually(t, "the row is still locked after the heal", free)
}
