package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// lockWait is the MySQL variable that limits, in seconds, how long a statement waits for a row.
const lockWait = "innodb_lock_wait_timeout"

// reliedOn are the variables of a session on which the code relies, whatever the server or the DSN says. Without
// autocommit, a single statement would be answered and never committed. The isolation level is in statements.
var reliedOn = map[string]string{ //nolint:gochecknoglobals // a table, never written
	"autocommit":       "1",
	"completion_type":  "0", // with CHAIN, the statement after a COMMIT would be in a transaction that never ends
	"sql_big_selects":  "1",
	"sql_mode":         "'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
	"sql_safe_updates": "0",
	"sql_select_limit": "18446744073709551615",
	"time_zone":        "'+00:00'",
	"unique_checks":    "1",
}

// Open returns a pool of at most conns connections. Open itself does not connect: statements do so
// when necessary. The format of dsn is user:password@tcp(host:port)/database.
func Open(dsn string, conns int) (*gorm.DB, error) {
	connector, err := connectorOf(dsn)
	if err != nil {
		return nil, err
	}
	return OpenOn(connector, conns)
}

// OpenOn is Open with another way to get a connection than over a network.
func OpenOn(connector driver.Connector, conns int) (*gorm.DB, error) {
	db, err := gorm.Open(dialect(newPool(connector, conns)), &gorm.Config{
		SkipDefaultTransaction: true, // one statement needs no BEGIN and COMMIT
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	if err := db.Use(newWaiters(conns)); err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	return db, nil
}

// OpenForResets returns a pool whose statements wait up to 20 s for a row that sales lock.
func OpenForResets(dsn string) (*gorm.DB, error) {
	cfg, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	cfg.Params[lockWait] = "20"
	cfg.ReadTimeout, cfg.WriteTimeout = 25*time.Second, 10*time.Second
	return Open(cfg.FormatDSN(), 2)
}

func dialect(pool *sql.DB) gorm.Dialector {
	return gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true})
}

func newPool(connector driver.Connector, conns int) *sql.DB {
	limit := &limited{Connector: connector, conns: conns}
	pool := sql.OpenDB(limit)
	limit.pool = pool
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool
}

// connectorOf returns what Open connects with.
func connectorOf(dsn string) (driver.Connector, error) {
	cfg, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	cfg.InterpolateParams = true // one round trip for a statement with arguments
	cfg.ClientFoundRows = true   // RowsAffected counts the rows found, even if unchanged
	cfg.ParseTime = true
	cfg.Logger = &mysql.NopLogger{} // the driver also returns its errors
	cfg.DialFunc = dial
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.ReadTimeout == 0 { // for a server that hangs; lockWait limits the wait for a row
		cfg.ReadTimeout, cfg.WriteTimeout = 10*time.Second, 10*time.Second
	}
	maps.Copy(cfg.Params, reliedOn)
	// InnoDB keeps a statement that waits for a row, even if its client has gone: for 50 s by its own default, and
	// for 2 s by ours. A request that may wait longer sends the statement again.
	if cfg.Params[lockWait] == "" {
		cfg.Params[lockWait] = "2"
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql address: %w", err)
	}
	return statements{connector}, nil
}

// dial connects to the server. At the deadline of ctx, a net.Dialer can return its error just before
// ctx ends. The caller would take that for a server that does not answer, so dial waits for the end.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if deadline, limited := ctx.Deadline(); err != nil && limited && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return conn, err
}
