package stock

import (
	"database/sql"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// ReadAt sends db's plain SELECTs of the stock to a follower of its server (tutorial 1.6.3:
// read-write split): Ledger.Read is one. Everything in a transaction and every FOR UPDATE
// stays where the writes go, and so do the tables of locks: who looks for its own row at a
// follower does not find it. dsn and conns are as for Open, which gave db; call it before
// db is used. The pool is the caller's to close.
//
// DANGER: a follower applies a write after its commit. Whoever reads there inside a lock
// may read what was left before the last holder's sale.
func ReadAt(db *gorm.DB, dsn string, conns int) (*sql.DB, error) {
	pool, err := openPool(dsn, conns)
	if err != nil {
		return nil, err
	}
	follower := dbresolver.Config{Replicas: []gorm.Dialector{dialect(pool)}}
	if err := db.Use(dbresolver.Register(follower, &Item{})); err != nil {
		return nil, fmt.Errorf("open mysql for reads: %w", err)
	}
	return pool, nil
}
