package rig_test

import (
	"database/sql"
	"slices"
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
			for name, db := range map[string]*sql.DB{"A": a, "B": b} {
				if got := wrote(t, db); !slices.Equal(got, []string{"A", "B"}) {
					t.Errorf("on %s are the rows of %v", name, got)
				}
			}
		})
	}
}

// TestHoldReplication holds the replication between two masters, and checks that each master then
// has its own writes only. After the release, each master has all rows. A row that both masters
// wrote has on each master the value of the other master.
func TestHoldReplication(t *testing.T) {
	rigtest.Nightly(t, "TestDelayedReads of ./lab/rig and TestEveryHazard of ./lab/experiment")
	r := rigtest.Start(t, rig.Config{MySQL: true, Database: rig.TwoMasters})
	a, b := node(t, r, "mysql"), node(t, r, "mysql-2")
	write(t, a, "CREATE TABLE wrote (id INT PRIMARY KEY, node CHAR(1)) ENGINE=InnoDB")
	must(t, r.AwaitEven(t.Context()))

	release, err := r.HoldReplication(t.Context())
	must(t, err)
	write(t, a, "INSERT INTO wrote VALUES (1, 'A'), (3, 'A')")
	write(t, b, "INSERT INTO wrote VALUES (2, 'B'), (3, 'B')")
	if got := wrote(t, a); !slices.Equal(got, []string{"A", "A"}) {
		t.Errorf("held, A has the rows of %v", got)
	}
	if got := wrote(t, b); !slices.Equal(got, []string{"B", "B"}) {
		t.Errorf("held, B has the rows of %v", got)
	}
	must(t, release(t.Context()))
	must(t, r.AwaitEven(t.Context()))
	if got := wrote(t, a); !slices.Equal(got, []string{"A", "B", "B"}) {
		t.Errorf("released, A has the rows of %v", got)
	}
	if got := wrote(t, b); !slices.Equal(got, []string{"A", "A", "B"}) {
		t.Errorf("released, B has the rows of %v", got)
	}
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
	if got := wrote(t, follower); !slices.Equal(got, []string{"early"}) {
		t.Errorf("held, the follower has the rows %v", got)
	}
	must(t, release(t.Context()))
	must(t, r.AwaitEven(t.Context()))
	if got := wrote(t, follower); !slices.Equal(got, []string{"early", "late"}) {
		t.Errorf("released, the follower has the rows %v", got)
	}
	// The servers of a pair keep a binary log, and so add -log to their version.
	if version, err := backend.MySQLVersion(t.Context(), r.Addresses().MySQL); err != nil || !strings.Contains(version, "MariaDB") || strings.HasSuffix(version, "-log") {
		t.Errorf("the version is %q, %v", version, err)
	}
	if s, err := r.Server("mysql-2"); err != nil || !strings.Contains(r.Addresses().Reads, s.Addr()) {
		t.Errorf("replicas read at %q, %v", r.Addresses().Reads, err)
	}
}

func TestConfigOfPairs(t *testing.T) {
	for want, cfg := range map[string]rig.Config{
		`no database "oracle"`: {MySQL: true, Database: "oracle"},
		"needs Config.MySQL":   {Database: rig.Galera},
	} {
		if _, err := rig.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	r := rigtest.Start(t, rig.Config{Redis: 1})
	if err := r.AwaitEven(t.Context()); err != nil {
		t.Errorf("a rig without a pair is not even: %v", err)
	}
	if _, err := r.HoldReplication(t.Context()); err == nil {
		t.Error("a rig without a pair has a replication")
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

// wrote returns the values of the column node of all rows in the table wrote, in alphabetical
// order.
func wrote(t *testing.T, db *sql.DB) (nodes []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT node FROM wrote ORDER BY node")
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var node string
		must(t, rows.Scan(&node))
		nodes = append(nodes, node)
	}
	must(t, rows.Err())
	return nodes
}
