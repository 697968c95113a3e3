package stock

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// lockWait is how many seconds InnoDB lets a statement wait for a row.
const lockWait = "innodb_lock_wait_timeout"

// Open prepares a pool of at most conns connections. It does not connect: the
// first statement does, and every later one again where the server went away.
// dsn is the Go driver's: user:password@tcp(host:port)/database.
func Open(dsn string, conns int) (*gorm.DB, error) {
	pool, err := openPool(dsn, conns)
	if err != nil {
		return nil, err
	}
	db, err := gorm.Open(dialect(pool), &gorm.Config{
		SkipDefaultTransaction: true, // one statement needs no BEGIN and COMMIT
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	if err := db.Use(&room{}); err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	return db, nil
}

// OpenForResets is Open for the few statements that must come through while customers
// crowd a product: over connections of their own, and with more time for its row than a
// customer has in InnoDB's queue. All who were ahead have left that by then.
func OpenForResets(dsn string) (*gorm.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql address: %w", err)
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params[lockWait] = "20"
	cfg.ReadTimeout, cfg.WriteTimeout = 25*time.Second, 10*time.Second
	return Open(cfg.FormatDSN(), 2)
}

func dialect(pool *sql.DB) gorm.Dialector {
	return gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true})
}

// openPool is the same for every server, whatever is asked of it.
func openPool(dsn string, conns int) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql address: %w", err)
	}
	cfg.InterpolateParams = true // one round trip for a statement with arguments
	cfg.ClientFoundRows = true   // rows affected = rows found, also where nothing changed
	cfg.ParseTime = true
	cfg.Logger = &mysql.NopLogger{} // errors are returned; nothing to say twice
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.ReadTimeout == 0 { // a server that hangs, not a row that is locked: see below
		cfg.ReadTimeout, cfg.WriteTimeout = 10*time.Second, 10*time.Second
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	// A waiter whose client hung up stays in InnoDB's queue until this many
	// seconds have passed; one that still wants the row asks again.
	if cfg.Params[lockWait] == "" {
		cfg.Params[lockWait] = "2"
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql address: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool, nil
}
