package explore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"oversell/stock"
)

// gatedConnector makes connections whose statements wait until the schedule delivers them. It stands on that of
// package stock, which sets the isolation level: in a SERIALIZABLE transaction, a plain SELECT would take locks.
type gatedConnector struct {
	driver.Connector
	client *mysqlClient
}

func (g gatedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(stock.Conn)
	if !ok {
		return nil, fmt.Errorf("explore: a connection of type %T", conn)
	}
	id, err := connectionID(ctx, full)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &gatedConn{Conn: full, client: g.client, id: id}, nil
}

func connectionID(ctx context.Context, conn stock.Conn) (id uint64, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT CONNECTION_ID()", nil)
	if err != nil {
		return 0, err
	}
	value := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(value), rows.Close()); err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(fmt.Sprint(value[0]), &id)
	return id, err
}

type gatedConn struct {
	stock.Conn
	client *mysqlClient
	id     uint64
	tx     *transaction // nil outside of a transaction
}

// transaction collects the tables of its statements.
type transaction struct{ tables []string }

var errPrepared = errors.New("explore: prepared statements are not supported")

func (c *gatedConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return nil, errPrepared
}
func (c *gatedConn) Prepare(string) (driver.Stmt, error) { return nil, errPrepared }

// ExecContext ignores the deadline of ctx while it waits for the delivery, because no time passes in a
// schedule.
func (c *gatedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	err = c.client.execute(c, newStatement(query, args, c.client.product), func() (changes bool, err error) {
		result, err = c.Conn.ExecContext(context.WithoutCancel(ctx), query, args)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		return n > 0, err
	})
	return result, err
}

func (c *gatedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.client.execute(c, newStatement(query, args, c.client.product), func() (changes bool, err error) {
		rows, err = c.Conn.QueryContext(context.WithoutCancel(ctx), query, args)
		return true, err
	})
	return rows, err
}

func (c *gatedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	s := newStatement("START TRANSACTION", nil, 0)
	s.kind, s.tables = connectionOnly, nil
	err = c.client.execute(c, s, func() (bool, error) {
		tx, err = c.Conn.BeginTx(context.WithoutCancel(ctx), opts)
		return false, err
	})
	if err != nil {
		return nil, err
	}
	c.tx = &transaction{}
	return &gatedTx{tx, c}, nil
}

type gatedTx struct {
	driver.Tx
	conn *gatedConn
}

func (t *gatedTx) Commit() error   { return t.end("COMMIT", t.Tx.Commit) }
func (t *gatedTx) Rollback() error { return t.end("ROLLBACK", t.Tx.Rollback) }

func (t *gatedTx) end(query string, do func() error) error {
	s := newStatement(query, nil, 0)
	s.tables = t.conn.tx.tables
	err := t.conn.client.execute(t.conn, s, func() (bool, error) { return true, do() })
	t.conn.tx = nil
	return err
}
