package stock

import (
	"database/sql"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// ReadAt sends plain SELECTs of db_stock to a follower (read-write split, tutorial 1.6.3). Call it
// before any use of db, and close the returned pool.
//
// DANGER: a follower applies a write only after its commit. On a follower, the holder of a lock may
// read the stock from before the previous holder's sale.
func ReadAt(db *gorm.DB, dsn string, conns int) (*sql.DB, error) {
	connector, err := connectorOf(dsn)
	if err != nil {
		return nil, err
	}
	pool := newPool(connector, conns)
	follower := dbresolver.Config{Replicas: []gorm.Dialector{dialect(pool)}}
	if err := db.Use(dbresolver.Register(follower, &Item{})); err != nil {
		return nil, fmt.Errorf("open mysql for reads: %w", err)
	}
	return pool, nil
}
