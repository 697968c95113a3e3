package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// limited is a connector for a server that refuses further connections. Then its pool shrinks to the connections that
// it has, so that requests wait in line for one of them. A second later, it may grow again.
type limited struct {
	driver.Connector
	pool  *sql.DB // which uses this connector
	conns int
}

// refusal is how long the first connection of a pool is tried again: some requests have no wait of their own.
const refusal = 10 * time.Second

// Connect tries again if the server refuses even the first connection of the pool.
func (l *limited) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, refusal)
	defer cancel()
	for refused := error(nil); ; {
		conn, err := l.Connector.Connect(ctx)
		if err != nil && ctx.Err() != nil && refused != nil {
			err = refused // it says more than the end of the context
		}
		if refused = err; !isAnswer(err, tooMany, tooManyOfUser, userLimit) {
			return conn, err
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if others := l.pool.Stats().OpenConnections - 1; others > 0 {
			l.pool.SetMaxOpenConns(others)
			time.AfterFunc(time.Second, func() { l.pool.SetMaxOpenConns(l.conns) })
			return nil, fmt.Errorf("%w: %w", driver.ErrBadConn, err) // database/sql tries again
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
