package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

type column struct {
	name, kind, definition, nullable string
	needed                           bool // an INSERT must have a value for it; only of a table of the database
}

// ours returns the columns of each table, from the text of the migrations.
func ours() map[string][]column {
	tables := map[string][]column{}
	names, _ := fs.Glob(files, "*.sql") // no error: the pattern is good
	for _, name := range names {
		text, _ := files.ReadFile(name) // no error: Glob has found it
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
				tables[table[1]] = append(tables[table[1]], column{c[1], kind, strings.Join(strings.Fields(c[2]+c[3]), " "), nullable, false})
			}
		}
	}
	return tables
}

// found is a table of the database.
type found struct {
	engine  string // empty for a view
	columns []column
}

// check returns ErrForeign if a table exists that does not fit: with it, sales would fail or be lost. It names
// what is there, what is needed, and the ways on. Tables that do not exist yet are fine.
func check(ctx context.Context, db *sql.DB) error {
	existing, err := read(ctx, db)
	if err != nil {
		return err
	}
	tables := ours()
	var all []error
	for _, name := range slices.Sorted(maps.Keys(tables)) { // always the same text
		if table, ok := existing[name]; ok {
			all = append(all, compare(name, table, tables[name]))
		}
	}
	return errors.Join(all...)
}

// read returns the tables of the database, by name.
func read(ctx context.Context, db *sql.DB) (map[string]*found, error) {
	rows, err := db.QueryContext(ctx, `SELECT table_name, COALESCE(engine, ''), column_name, data_type, column_type, is_nullable,
		is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%'
		FROM information_schema.tables JOIN information_schema.columns USING (table_schema, table_name) WHERE table_schema = DATABASE()`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	tables := map[string]*found{}
	for rows.Next() {
		var name, engine string
		var c column
		if err := rows.Scan(&name, &engine, &c.name, &c.kind, &c.definition, &c.nullable, &c.needed); err != nil {
			return nil, err
		}
		if tables[name] == nil {
			tables[name] = &found{engine: engine}
		}
		tables[name].columns = append(tables[name].columns, c)
	}
	return tables, rows.Err()
}

func compare(name string, table *found, columns []column) error {
	var wrong, changes []string
	missing := slices.Clone(columns)
	for _, c := range table.columns {
		i := slices.IndexFunc(columns, func(want column) bool { return strings.EqualFold(want.name, c.name) })
		switch {
		case i < 0 && c.needed:
			wrong = append(wrong, "its column "+c.name+" needs a value")
			changes = append(changes, fmt.Sprintf("MODIFY %#q %s NULL", c.name, c.definition))
		case i >= 0:
			want := columns[i]
			missing = slices.DeleteFunc(missing, func(c column) bool { return c == want })
			if !strings.EqualFold(c.kind, want.kind) || c.nullable != want.nullable {
				wrong = append(wrong, fmt.Sprintf("its column %s is %s %s", c.name, c.definition, map[string]string{"YES": "NULL", "NO": "NOT NULL"}[c.nullable]))
				changes = append(changes, fmt.Sprintf("MODIFY %#q %s", want.name, want.definition))
			}
		}
	}
	for _, c := range missing {
		wrong = append(wrong, "it has no column "+c.name)
		changes = append(changes, fmt.Sprintf("ADD COLUMN %#q %s", c.name, c.definition))
	}
	if !strings.EqualFold(table.engine, "InnoDB") {
		wrong = append(wrong, fmt.Sprintf("its engine %q has no transactions", table.engine))
		changes = append(changes, "ENGINE=InnoDB")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %s. Use another database in MYSQL_DSN, or convert the table: ALTER TABLE %s %s",
		name, ErrForeign, strings.Join(wrong, ", "), name, strings.Join(changes, ", "))
}
