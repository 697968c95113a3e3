package stock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestDifferences checks the differences between MySQL and MariaDB in docs/production.md.
func TestDifferences(t *testing.T) {
	db, err := sql.Open("mysql", rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true})).Addresses().MySQL)
	must(t, err)
	defer func() { _ = db.Close() }()
	version := valueOf(t, db, "SELECT VERSION()")
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	isMariaDB, isMySQL9 := strings.Contains(version, "MariaDB"), major > 9 || major == 9 && minor >= 6
	if !isMariaDB && !isMySQL9 && (major != 8 || minor != 0) {
		t.Skip("the document says nothing about MySQL " + version)
	}
	for _, test := range []struct{ statement, mariaDB, mySQL8, mySQL9 string }{
		{"SELECT MD5('x')", "9dd4e461268c8034f5c8564e155c67a6", "9dd4e461268c8034f5c8564e155c67a6", "error 1305"},
		{"SELECT SHA1('x')", "11f6ad8ec52a2984abaafd7c3b516503785c2072", "11f6ad8ec52a2984abaafd7c3b516503785c2072", "error 1305"},
		{"SELECT LENGTH(SHA2('x', 256))", "64", "64", "64"},
		{"SELECT @@innodb_snapshot_isolation", "0", "error 1193", "error 1193"}, // the lab turns it off
		{"SELECT GET_LOCK(REPEAT('a', 65), 0)", "1", "error 3057", "error 4163"},
		{"SELECT GET_LOCK('differences', -1)", "NULL", "1", "1"},
		{"SELECT 1 FROM DUAL FOR SHARE", "error 1064", "1", "1"},
	} {
		want := test.mySQL8
		if isMariaDB {
			want = test.mariaDB
		} else if isMySQL9 {
			want = test.mySQL9
		}
		if got := valueOf(t, db, test.statement); got != want {
			t.Errorf("%s on %s: %s, want %s", test.statement, version, got, want)
		}
	}
	if got, want := locksDeadlock(t, db), map[bool]string{true: "error 1213", false: "error 3058"}[isMariaDB]; got != want {
		t.Errorf("a deadlock of GET_LOCK on %s: %s, want %s", version, got, want)
	}
}

// locksDeadlock lets two sessions wait for each other's lock, and returns the answer to the second.
func locksDeadlock(t *testing.T, db *sql.DB) string {
	t.Helper()
	a, err := db.Conn(t.Context())
	must(t, err)
	b, err := db.Conn(t.Context())
	must(t, err)
	defer func() { _, _ = a.Close(), b.Close() }()
	valueOf(t, a, "SELECT GET_LOCK('a', 60)")
	valueOf(t, b, "SELECT GET_LOCK('b', 60)")
	id := valueOf(t, a, "SELECT CONNECTION_ID()")
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		_ = a.QueryRowContext(t.Context(), "SELECT GET_LOCK('b', 60)").Scan(new(sql.NullString))
	}()
	for valueOf(t, db, "SELECT state FROM information_schema.processlist WHERE id = "+id) != "User lock" {
		time.Sleep(10 * time.Millisecond)
	}
	answer := valueOf(t, b, "SELECT GET_LOCK('a', 60)")
	valueOf(t, b, "SELECT RELEASE_LOCK('b')")
	<-waits
	return answer
}

// querier is a database, or one of its connections.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// valueOf returns the value of a statement, or the number of its error.
func valueOf(t *testing.T, db querier, statement string) string {
	t.Helper()
	var value sql.NullString
	err := db.QueryRowContext(t.Context(), statement).Scan(&value)
	answer := (*mysql.MySQLError)(nil)
	switch {
	case errors.As(err, &answer):
		return "error " + strconv.Itoa(int(answer.Number))
	case err != nil:
		t.Fatalf("%s: %v", statement, err)
	case !value.Valid:
		return "NULL"
	}
	return value.String
}
