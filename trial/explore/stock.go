package explore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// row is the row of db_stock. MySQL executes single statements one after the other, so a struct in
// memory is enough for the strategies that use no transaction.
type row struct {
	count          int
	version, fence int64
}

const (
	initialCount = 10
	mysqlServer  = "mysql"
)

// database is MySQL as one client sees it. It understands the statements of stock.Ledger and
// stock.Writer, and no others.
type database struct {
	w      *world
	client int
}

func (d database) Connect(context.Context) (driver.Conn, error) { return connection{d}, nil }
func (d database) Driver() driver.Driver                        { return nil }

type connection struct{ database }

func (connection) Prepare(query string) (driver.Stmt, error) { return nil, unknown(query) }
func (connection) Close() error                              { return nil }
func (connection) Begin() (driver.Tx, error)                 { return nil, unknown("BEGIN") }

func unknown(query string) error {
	return fmt.Errorf("the explorer has no database that executes %q", query)
}

// ask sends a statement, and returns when its answer has arrived.
func (d database) ask(name string, writes bool, execute func()) error {
	m := &message{
		client: d.client, name: name, server: mysqlServer, writes: writes,
		lose: func() {}, lost: mysql.ErrInvalidConn,
	}
	return d.w.call(context.Background(), m, func() error { execute(); return nil })
}

func (c connection) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	row, affected, n := &c.w.row, int64(0), numbers(args)
	var name string
	var execute func()
	switch query {
	case "UPDATE db_stock SET count = ? WHERE id = ? AND version = ?":
		name, execute = "write the stock", func() {
			if row.version == n[2] {
				row.count, affected = int(n[0]), 1
			}
		}
	case "UPDATE db_stock SET count = ? WHERE id = ? AND version = ? AND fence = ?":
		name, execute = "write the stock, fenced", func() {
			if row.version == n[2] && row.fence == n[3] {
				row.count, affected = int(n[0]), 1
			}
		}
	case "UPDATE db_stock SET fence = ? WHERE id = ? AND fence < ?":
		name, execute = "register the fence", func() {
			if row.fence < n[2] {
				row.fence, affected = n[0], 1
			}
		}
	default:
		return nil, unknown(query)
	}
	err := c.ask(name, true, execute)
	return driver.RowsAffected(affected), err
}

func (c connection) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	var seen row
	read := func() { seen = c.w.row }
	switch {
	case query == "SELECT version, fence FROM db_stock WHERE id = ?":
		err := c.ask("read the fence", false, read)
		return &rows{columns: []string{"version", "fence"}, values: []driver.Value{seen.version, seen.fence}}, err
	case strings.HasPrefix(query, "SELECT * FROM `db_stock` WHERE `db_stock`.`id` = ?"):
		err := c.ask("read the stock", false, read)
		return &rows{
			columns: []string{"id", "product_code", "stock_code", "count", "version", "fence"},
			values:  []driver.Value{int64(product), "1001", "001", int64(seen.count), seen.version, seen.fence},
		}, err
	}
	return nil, unknown(query)
}

func numbers(args []driver.NamedValue) (n []int64) {
	for _, a := range args {
		if number, ok := a.Value.(int64); ok {
			n = append(n, number)
		}
	}
	return n
}

// rows is an answer of one row.
type rows struct {
	columns []string
	values  []driver.Value
	read    bool
}

func (r *rows) Columns() []string { return r.columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	copy(to, r.values)
	return nil
}
