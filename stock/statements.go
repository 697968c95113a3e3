package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"gorm.io/gorm/logger"
)

func beginStatement(ctx context.Context, query string) (end func(error)) {
	if begin := WatchOf(ctx).Statement; begin != nil {
		return begin(ctx, query)
	}
	return func(error) {}
}

// statements is a connector whose connections report each statement, see Watch. It
// stands below gorm and database/sql, so it also records BEGIN and COMMIT.
type statements struct{ driver.Connector }

// isolation is the level of each transaction that sets no other one. MySQL and MariaDB have different variables
// for it, so it cannot be in reliedOn.
const isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"

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
	Sent(ctx, func() string { return interpolated(query, args) })
	end := beginStatement(ctx, query)
	result, err := c.fullConn.ExecContext(ctx, query, args)
	end(err)
	return result, err
}

func (c statementConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	Sent(ctx, func() string { return interpolated(query, args) })
	end := beginStatement(ctx, query)
	result, err := c.fullConn.QueryContext(ctx, query, args)
	end(err)
	return result, err
}

// BeginTx records the same statements that the driver sends.
func (c statementConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if level := sql.IsolationLevel(opts.Isolation); level != sql.LevelDefault {
		Sent(ctx, func() string { return "SET TRANSACTION ISOLATION LEVEL " + strings.ToUpper(level.String()) })
	}
	Sent(ctx, func() string { return "START TRANSACTION" })
	end := beginStatement(ctx, "START TRANSACTION")
	tx, err := c.fullConn.BeginTx(ctx, opts)
	end(err)
	return statementTx{tx, ctx}, err
}

// statementTx keeps the context of BeginTx, because Commit and Rollback get none.
type statementTx struct {
	driver.Tx
	ctx context.Context
}

func (t statementTx) Commit() error {
	Sent(t.ctx, func() string { return "COMMIT" })
	end := beginStatement(t.ctx, "COMMIT")
	err := t.Tx.Commit()
	end(err)
	return err
}

func (t statementTx) Rollback() error {
	Sent(t.ctx, func() string { return "ROLLBACK" })
	end := beginStatement(t.ctx, "ROLLBACK")
	err := t.Tx.Rollback()
	end(err)
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
