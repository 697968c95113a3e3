package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"gorm.io/gorm/logger"
)

// reported sends a statement. It records the statement, and reports its begin and its end.
func reported[T any](ctx context.Context, query string, args []driver.NamedValue, send func() (T, error)) (T, error) {
	Sent(ctx, func() string { return interpolated(query, args) })
	end := func(error) {}
	if begin := WatchOf(ctx).Statement; begin != nil {
		end = begin(ctx, query)
	}
	result, err := send()
	end(err)
	return result, err
}

// statements is a connector whose connections report each statement, see Watch. It
// stands below gorm and database/sql, so it also records BEGIN and COMMIT.
type statements struct{ driver.Connector }

// isolation is the level of each transaction that sets no other one. MySQL and MariaDB have different variables
// for it, and for read-only sessions, so they cannot be in reliedOn.
const isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE"

// Connect returns a connection that records its statements. Its error is a notConnected.
func (s statements) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, &notConnected{err}
	}
	if full, ok := conn.(fullConn); ok {
		if _, err := full.ExecContext(ctx, isolation, nil); err != nil {
			_ = conn.Close()
			return nil, &notConnected{err}
		}
		return statementConn{full}, nil
	}
	return conn, nil
}

// fullConn has the methods of the driver's connection that database/sql looks for.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type statementConn struct{ fullConn }

func (c statementConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return reported(ctx, query, args, func() (driver.Result, error) { return c.fullConn.ExecContext(ctx, query, args) })
}

func (c statementConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return reported(ctx, query, args, func() (driver.Rows, error) { return c.fullConn.QueryContext(ctx, query, args) })
}

// BeginTx records the same statements that the driver sends.
func (c statementConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if level := sql.IsolationLevel(opts.Isolation); level != sql.LevelDefault {
		Sent(ctx, func() string { return "SET TRANSACTION ISOLATION LEVEL " + strings.ToUpper(level.String()) })
	}
	tx, err := reported(ctx, "START TRANSACTION", nil, func() (driver.Tx, error) { return c.fullConn.BeginTx(ctx, opts) })
	return statementTx{tx, ctx}, err
}

// statementTx keeps the context of BeginTx, because Commit and Rollback get none.
type statementTx struct {
	driver.Tx
	ctx context.Context
}

func (t statementTx) Commit() error {
	_, err := reported(t.ctx, "COMMIT", nil, func() (driver.Tx, error) { return nil, t.Tx.Commit() })
	return err
}

func (t statementTx) Rollback() error {
	_, err := reported(t.ctx, "ROLLBACK", nil, func() (driver.Tx, error) { return nil, t.Tx.Rollback() })
	return err
}

// interpolated puts the arguments into the statement. The driver does the same, see
// InterpolateParams.
func interpolated(query string, args []driver.NamedValue) string {
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	return logger.ExplainSQL(query, nil, "'", values...)
}
