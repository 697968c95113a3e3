package explore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks/catalog"
	"oversell/stock"
)

// executor executes schedules of a scope. Several goroutines may call run.
type executor interface {
	// run executes one schedule. choose gets the possible moves, and returns the index of the next one,
	// or -1 to end the schedule early.
	run(choose func([]move) int) (o Ending, complete bool, err error)
	Close() error
}

func openExecutor(t Scope) (executor, error) {
	switch _, must := OnMySQL(t.Strategy); {
	case t.MySQL != "":
		return openMySQL(t)
	case must:
		return nil, fmt.Errorf("explore: %s needs a real MySQL", t.Strategy)
	}
	return newRunner(t)
}

// Close has nothing to close: each schedule in memory has servers of its own.
func (r *runner) Close() error { return nil }

// OnMySQL reports whether a strategy can run on a real MySQL, and whether it must, because it uses
// transactions or tables of its own.
func OnMySQL(strategy string) (can, must bool) {
	lock, _ := Scope{Strategy: strategy}.find()
	card := lock.Card
	must = card.Family == "mysql" || card.BrokenBy(api.EarlyRelease)
	return must || card.Family == "local", must
}

// SupportsOnMySQL returns an error if the explorer cannot run a scope on a real MySQL.
func SupportsOnMySQL(t Scope) error {
	if can, _ := OnMySQL(t.Strategy); !can {
		return fmt.Errorf("explore: %s runs on servers in memory, not on a real MySQL", t.Strategy)
	}
	if t.Bounds != (Bounds{Clients: t.Bounds.Clients, Fenced: t.Bounds.Fenced}) {
		return errors.New("explore: on a real MySQL there are no faults, only all orders of the statements")
	}
	return t.Supported()
}

const (
	// noTimeout is the wait for a lock, its lease, and the limit of the server for a lock wait. It is so
	// long that no clock decides a schedule: only the order of the statements does.
	noTimeout = time.Hour
	// hangs is how long a client or the server may take for one step before the search ends with an error.
	hangs = time.Minute
)

// mysqlExecutor runs schedules on a real MySQL or MariaDB. A move delivers one statement of one client.
// Real time passes, but it decides nothing. So these are all schedules in which no lease ends, and in
// which the server ends no lock wait with error 1205. It ends deadlocks as always (error 1213).
type mysqlExecutor struct {
	Scope
	lock      Lock
	connector driver.Connector
	admin     *gorm.DB // resets the rows, and asks the server which statements wait

	// executing protects the server: statements of two schedules are never executed at the same time.
	// Schedules of different products change different rows, but they could wait for each other for a
	// moment, in an index or for a gap in it. That would look like a wait for a lock.
	executing sync.Mutex
	asked     time.Time        // when readersThatWait has last read the table; executing protects it
	all       []*mysqlSchedule // executing protects it

	free chan *mysqlSchedule // between two schedules, with their connections
}

func openMySQL(t Scope) (*mysqlExecutor, error) {
	if err := SupportsOnMySQL(t); err != nil {
		return nil, err
	}
	patient, err := stock.WithLockWait(t.MySQL, noTimeout)
	if err != nil {
		return nil, fmt.Errorf("explore: %w", err)
	}
	connector, err := stock.Connector(patient)
	if err != nil {
		return nil, err
	}
	admin, err := stock.Open(t.MySQL, 2+runtime.GOMAXPROCS(0)) // it must not wait for an hour
	if err != nil {
		return nil, err
	}
	lock, _ := t.find() // SupportsOnMySQL has found it
	x := &mysqlExecutor{
		Scope: t, lock: lock, connector: connector, admin: admin,
		free: make(chan *mysqlSchedule, runtime.GOMAXPROCS(0)),
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	if _, err := x.waitForRows(ctx); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Close deletes the products, and closes all connections.
func (x *mysqlExecutor) Close() (err error) {
	for _, s := range x.all {
		err = errors.Join(err, s.close())
	}
	catalog.Backends{DB: x.admin}.Close()
	return err
}

func (x *mysqlExecutor) run(choose func([]move) int) (o Ending, complete bool, err error) {
	s, err := x.take()
	if err != nil {
		return o, false, err
	}
	if o, complete, err = s.run(choose); err == nil { // else a client may still run
		x.free <- s
	}
	return o, complete, err
}

// take returns a schedule that nobody uses, or a new one, with a product of its own.
func (x *mysqlExecutor) take() (*mysqlSchedule, error) {
	select {
	case s := <-x.free:
		return s, nil
	default:
		return x.newSchedule()
	}
}

// reset deletes what the strategies store for a product outside of its row of db_stock, and executes
// last. So the first sale of each schedule is the first one of the product.
func (x *mysqlExecutor) reset(product int64, last string) error {
	x.executing.Lock()
	defer x.executing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	key := api.Key(product)
	for _, s := range []struct {
		query string
		arg   any
	}{
		{"DELETE FROM db_lock WHERE lock_name = ?", key},
		{"DELETE FROM db_lock_naive WHERE lock_name = ?", key},
		{"DELETE FROM db_lock_cleaned WHERE lock_name = ?", key},
		{"DELETE FROM db_turnstile WHERE lock_name = ?", key},
		{"DELETE FROM db_queue WHERE lock_name = ?", key},
		// Without the index, MySQL may read the whole table, and wait for a reservation of another schedule,
		// which cannot commit during this reset.
		{"DELETE r FROM db_reservations r FORCE INDEX (expiry) WHERE r.product = ?", product},
		{last, product},
	} {
		if err := x.admin.WithContext(ctx).Exec(s.query, s.arg).Error; err != nil {
			return fmt.Errorf("explore: reset the product: %w", err)
		}
	}
	return nil
}
