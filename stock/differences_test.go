package stock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestDifferences checks the differences between MySQL and MariaDB in docs/production.md.
func TestDifferences(t *testing.T) {
	db, err := sql.Open("mysql", rigtest.Start(t, rig.Config{MySQL: true}).Addresses().MySQL)
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
}

// valueOf returns the value of a statement, or the number of its error.
func valueOf(t *testing.T, db *sql.DB, statement string) string {
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
