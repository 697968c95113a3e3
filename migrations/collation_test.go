package migrations_test

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// TestCollation checks that the schema compares all text byte by byte, on every server.
func TestCollation(t *testing.T) {
	r := rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true}))
	cfg, err := mysql.ParseDSN(r.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ParseTime = true
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := migrations.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), `SELECT table_name, column_name, collation_name FROM information_schema.columns
		WHERE table_schema = DATABASE() AND collation_name IS NOT NULL AND table_name LIKE 'db\_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns := 0
	for rows.Next() {
		var table, column, collation string
		if err := rows.Scan(&table, &column, &collation); err != nil {
			t.Fatal(err)
		}
		columns++
		if collation != "utf8mb4_bin" && collation != "ascii_bin" {
			t.Errorf("%s.%s has the collation %s", table, column, collation)
		}
	}
	if err := rows.Err(); err != nil || columns == 0 {
		t.Errorf("%d columns of text, %v", columns, err)
	}
}
