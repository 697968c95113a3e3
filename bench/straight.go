package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// processes is how many independent clients share the load, as three replicas
// do: each has a pool, a Redis client, a ZooKeeper session of its own.
const processes = 3

// contend has every client deduct in a loop, and measures. setUp makes one
// process: a function that deducts once, and one that ends it.
func contend(ctx context.Context, l lab, load load, setUp func() (deduct func(context.Context) error, end func(), err error)) (result, error) {
	db, err := open(l.MySQL)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = db.Close() }()
	total := load.clients * load.loops
	if _, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ?, version = 0, fence = 0 WHERE id = 1", total); err != nil {
		return result{}, err
	}
	var deducts []func(context.Context) error
	for range processes {
		deduct, end, err := setUp()
		if err != nil {
			return result{}, err
		}
		defer end()
		deducts = append(deducts, deduct)
	}
	latencies, errs := make([]time.Duration, total), make([]error, load.clients)
	var clients sync.WaitGroup
	began := time.Now()
	for i := range load.clients {
		clients.Go(func() {
			for n := range load.loops {
				asked := time.Now()
				if err := deducts[i%processes](ctx); err != nil {
					errs[i] = err
					return
				}
				latencies[i*load.loops+n] = time.Since(asked)
			}
		})
	}
	clients.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return result{}, err
		}
	}
	var left int
	if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = 1").Scan(&left); err != nil {
		return result{}, err
	}
	slices.Sort(latencies)
	return result{float64(total) / took.Seconds(), float64(latencies[total*99/100].Microseconds()) / 1000, left}, nil
}

// open has the settings of the service: one round trip for each statement, and
// as many connections.
func open(dsn string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c.InterpolateParams = true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)
	return db, nil
}

// sell is the critical section of every lock.
func sell(ctx context.Context, db *sql.DB) error {
	var count int
	if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ?", 1).Scan(&count); err != nil {
		return err
	}
	if count < 1 {
		return fmt.Errorf("sold out at %d", count)
	}
	_, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count-1, 1)
	return err
}

// forUpdate is one transaction on database/sql.
func forUpdate(ctx context.Context, l lab, load load) (result, error) {
	return contend(ctx, l, load, func() (func(context.Context) error, func(), error) {
		db, err := open(l.MySQL)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			var count int
			if err := tx.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", 1).Scan(&count); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count-1, 1); err != nil {
				return err
			}
			return tx.Commit()
		}, func() { _ = db.Close() }, nil
	})
}
