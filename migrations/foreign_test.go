package migrations_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/migrations"
)

// TestForeignTables puts tables of other programs into the database. Up must name what does not fit, and change
// nothing. The statement that it proposes must make the table fit.
func TestForeignTables(t *testing.T) {
	for name, test := range map[string]struct {
		tables []string
		wants  []string
	}{
		"the course's": {
			[]string{"CREATE TABLE db_stock (id bigint NOT NULL AUTO_INCREMENT, product_code varchar(255), stock_code varchar(255), " +
				"count int, PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=utf8", "INSERT INTO db_stock VALUES (1, '1001', '001', 5000)"},
			[]string{"it has no column version", "it has no column fence", "its column count is int(11) NULL"},
		},
		"a version that may be NULL": {[]string{"CREATE TABLE db_stock (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, product_code varchar(255) NOT NULL, " +
			"stock_code varchar(255) NOT NULL, count int NOT NULL, version bigint NULL, fence bigint NOT NULL DEFAULT 0)"}, []string{"its column version is bigint(20) NULL"}},
		"MyISAM": {
			[]string{"CREATE TABLE db_units (product bigint NOT NULL, id bigint NOT NULL, PRIMARY KEY (product, id)) ENGINE=MyISAM"},
			[]string{`db_units: the table was not made by oversell: its engine "MyISAM" has no transactions`},
		},
		"another lock's": {
			[]string{"CREATE TABLE db_lock (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, lock_name varchar(100) NOT NULL, thread_id varchar(64) NOT NULL)"},
			[]string{"its column thread_id needs a value", "it has no column owner", "it has no column expires_at"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true}))
			db, err := sql.Open("mysql", r.Addresses().MySQL+"?parseTime=true") // for the lock of the migrations
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			exec := func(statement string) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			for _, statement := range test.tables {
				exec(statement)
			}
			err = migrations.Up(t.Context(), db)
			if !errors.Is(err, migrations.ErrForeign) {
				t.Fatalf("Up: %v", err)
			}
			for _, want := range test.wants {
				// MySQL has no width of an integer.
				if got := err.Error(); !strings.Contains(got, want) && !strings.Contains(got, strings.NewReplacer("int(11)", "int", "int(20)", "int").Replace(want)) {
					t.Errorf("it does not say %q: %v", want, err)
				}
			}
			var tables int
			if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables); err != nil || tables != 1 {
				t.Errorf("%d tables, %v", tables, err)
			}
			_, convert, _ := strings.Cut(err.Error(), "convert the table: ")
			exec(convert)
			if err := migrations.Up(t.Context(), db); err != nil {
				t.Errorf("after %s: %v", convert, err)
			}
		})
	}
}
