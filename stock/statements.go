package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"gorm.io/gorm/logger"
)

// statements is a connector whose connections record each statement, see Commands. It stands below
// gorm and database/sql, so it also records BEGIN and COMMIT.
type statements struct{ driver.Connector }

// Connect returns a connection that records its statements.
func (s statements) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if full, ok := conn.(fullConn); ok && err == nil {
		return statementConn{full}, nil
	}
	return conn, err
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
	Sent(ctx, func() string { return interpolated(query, args) })
	return c.fullConn.ExecContext(ctx, query, args)
}

func (c statementConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	Sent(ctx, func() string { return interpolated(query, args) })
	return c.fullConn.QueryContext(ctx, query, args)
}

// BeginTx records the same statements that the driver sends.
func (c statementConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if level := sql.IsolationLevel(opts.Isolation); level != sql.LevelDefault {
		Sent(ctx, func() string { return "SET TRANSACTION ISOLATION LEVEL " + strings.ToUpper(level.String()) })
	}
	Sent(ctx, func() string { return "START TRANSACTION" })
	tx, err := c.fullConn.BeginTx(ctx, opts)
	return statementTx{tx, ctx}, err
}

// statementTx keeps the context of BeginTx, because Commit and Rollback get none.
type statementTx struct {
	driver.Tx
	ctx context.Context
}

func (t statementTx) Commit() error {
	Sent(t.ctx, func() string { return "COMMIT" })
	return t.Tx.Commit()
}

func (t statementTx) Rollback() error {
	Sent(t.ctx, func() string { return "ROLLBACK" })
	return t.Tx.Rollback()
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
