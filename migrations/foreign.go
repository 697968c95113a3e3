package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// ErrForeign means that the database has a table of one of our names that another program has made.
var ErrForeign = errors.New("the table was not made by oversell")

// tableSQL and columnSQL find the tables and their columns in our own migrations.
var (
	tableSQL  = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+) \(\n(.*?)\n\)`)
	columnSQL = regexp.MustCompile("(?m)^  `?(\\w+)`? +(\\w+)(.*?)(?: COMMENT .*)?,?$")
)

type column struct{ name, kind, definition, nullable string }

// ours returns the columns of each table, from the text of the migrations.
func ours() (map[string][]column, error) {
	tables := map[string][]column{}
	names, err := fs.Glob(files, "*.sql")
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, table := range tableSQL.FindAllStringSubmatch(string(text), -1) {
			for _, c := range columnSQL.FindAllStringSubmatch(table[2], -1) {
				if slices.Contains([]string{"PRIMARY", "UNIQUE", "KEY"}, c[1]) {
					continue
				}
				nullable := "YES"
				if strings.Contains(c[3], "NOT NULL") {
					nullable = "NO"
				}
				kind := strings.Replace(c[2], "bool", "tinyint", 1) // MySQL has no other bool
				tables[table[1]] = append(tables[table[1]], column{c[1], kind, strings.Join(strings.Fields(c[2]+c[3]), " "), nullable})
			}
		}
	}
	return tables, err
}

// check returns ErrForeign if a table exists that does not fit: with it, sales would fail or be lost. It names
// what is there, what is needed, and the ways on. Tables that do not exist yet are fine.
func check(ctx context.Context, db *sql.DB) error {
	tables, err := ours()
	if err != nil {
		return err
	}
	var all []error
	for table, columns := range tables {
		all = append(all, checkTable(ctx, db, table, columns))
	}
	return errors.Join(all...)
}

func checkTable(ctx context.Context, db *sql.DB, table string, columns []column) error {
	var engine sql.NullString
	err := db.QueryRowContext(ctx, "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", table).Scan(&engine)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, `SELECT column_name, data_type, column_type, is_nullable,
		is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%'
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?`, table)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var wrong, changes []string
	missing := slices.Clone(columns)
	for rows.Next() {
		var name, kind, definition, nullable string
		var needed bool
		if err := rows.Scan(&name, &kind, &definition, &nullable, &needed); err != nil {
			return err
		}
		i := slices.IndexFunc(columns, func(c column) bool { return strings.EqualFold(c.name, name) })
		switch {
		case i < 0 && needed:
			wrong = append(wrong, "its column "+name+" needs a value")
			changes = append(changes, fmt.Sprintf("MODIFY %#q %s NULL", name, definition))
		case i >= 0:
			want := columns[i]
			missing = slices.DeleteFunc(missing, func(c column) bool { return c == want })
			if !strings.EqualFold(kind, want.kind) || nullable != want.nullable {
				wrong = append(wrong, fmt.Sprintf("its column %s is %s", name, map[string]string{"YES": definition + " NULL", "NO": definition + " NOT NULL"}[nullable]))
				changes = append(changes, fmt.Sprintf("MODIFY %#q %s", want.name, want.definition))
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, c := range missing {
		wrong = append(wrong, "it has no column "+c.name)
		changes = append(changes, fmt.Sprintf("ADD COLUMN %#q %s", c.name, c.definition))
	}
	if !strings.EqualFold(engine.String, "InnoDB") { // a view has none
		wrong = append(wrong, fmt.Sprintf("its engine %q has no transactions", engine.String))
		changes = append(changes, "ENGINE=InnoDB")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %s. Use another database in MYSQL_DSN, or convert the table: ALTER TABLE %s %s",
		table, ErrForeign, strings.Join(wrong, ", "), table, strings.Join(changes, ", "))
}
