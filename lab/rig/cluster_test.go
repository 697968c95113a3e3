package rig_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestPairs writes to both nodes of a pair of MariaDB servers, and checks that each node has all
// writes after AwaitEven.
func TestPairs(t *testing.T) {
	for _, database := range []rig.Database{rig.Galera, rig.TwoMasters} {
		t.Run(string(database), func(t *testing.T) {
			r := rigtest.Start(t, rig.Config{MySQL: true, Database: database})
			a, b := node(t, r, "mysql"), node(t, r, "mysql-2")
			write(t, a, "CREATE TABLE wrote (id INT PRIMARY KEY AUTO_INCREMENT, node CHAR(1)) ENGINE=InnoDB")
			must(t, r.AwaitEven(t.Context()))
			write(t, b, "INSERT INTO wrote (node) VALUES ('B')")
			write(t, a, "INSERT INTO wrote (node) VALUES ('A')")
			must(t, r.AwaitEven(t.Context()))
			hasRows(t, a, "A B")
			hasRows(t, b, "A B")
			if database == rig.TwoMasters {
				holdsReplication(t, r, a, b)
			}
		})
	}
}

// holdsReplication holds the replication between two masters, and checks that each master then has its own
// writes only. After the release, each master has all rows. A row that both masters wrote has on each
// master the value of the other master.
func holdsReplication(t *testing.T, r *rig.Rig, a, b *sql.DB) {
	t.Helper()
	write(t, a, "DELETE FROM wrote")
	must(t, r.AwaitEven(t.Context()))
	release, err := r.HoldReplication(t.Context())
	must(t, err)
	write(t, a, "INSERT INTO wrote VALUES (11, 'A'), (13, 'A')")
	write(t, b, "INSERT INTO wrote VALUES (12, 'B'), (13, 'B')")
	hasRows(t, a, "A A")
	hasRows(t, b, "B B")
	must(t, release(t.Context()))
	must(t, r.AwaitEven(t.Context()))
	hasRows(t, a, "A B B")
	hasRows(t, b, "A A B")
}

// TestDelayedReads checks that the follower lacks the primary's new writes while replication is
// held, and has them after the release and AwaitEven.
func TestDelayedReads(t *testing.T) {
	r := rigtest.Start(t, rig.Config{MySQL: true, Database: rig.DelayedReads})
	primary, follower := node(t, r, "mysql"), node(t, r, "mysql-2")
	write(t, primary, "CREATE TABLE wrote (id INT PRIMARY KEY, node CHAR(5)) ENGINE=InnoDB")
	write(t, primary, "INSERT INTO wrote VALUES (1, 'early')")
	must(t, r.AwaitEven(t.Context()))

	release, err := r.HoldReplication(t.Context())
	must(t, err)
	write(t, primary, "INSERT INTO wrote VALUES (2, 'late')")
	hasRows(t, follower, "early")
	must(t, release(t.Context()))
	must(t, r.AwaitEven(t.Context()))
	hasRows(t, follower, "early late")
	// The servers of a pair keep a binary log, and so add -log to their version.
	if version, err := backend.MySQLVersion(t.Context(), r.Addresses().MySQL); err != nil || !strings.Contains(version, "MariaDB") || strings.HasSuffix(version, "-log") {
		t.Errorf("the version is %q, %v", version, err)
	}
	if s, err := r.Server("mysql-2"); err != nil || !strings.Contains(r.Addresses().Reads, s.Addr()) {
		t.Errorf("replicas read at %q, %v", r.Addresses().Reads, err)
	}
}

func node(t *testing.T, r *rig.Rig, name string) *sql.DB {
	t.Helper()
	s, err := r.Server(name)
	must(t, err)
	cfg, err := mysql.ParseDSN(r.Addresses().MySQL)
	must(t, err)
	cfg.Addr = s.Addr()
	db, err := sql.Open("mysql", cfg.FormatDSN())
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func write(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	must(t, err)
}

// hasRows checks the values of the column node of all rows in the table wrote, in alphabetical order.
func hasRows(t *testing.T, db *sql.DB, want string) {
	t.Helper()
	var got sql.NullString
	must(t, db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(node ORDER BY node SEPARATOR ' ') FROM wrote").Scan(&got))
	if got.String != want {
		t.Errorf("the node has the rows of %s, want %s", got.String, want)
	}
}
