package stock

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
)

// With these errors, surely nothing was taken. With any other the outcome is
// unknown: the write was sent, and no answer came.
var (
	ErrSoldOut        = errors.New("sold out")
	ErrUnknownProduct = errors.New("unknown product")
	// ErrFenced says that a later fence is registered in the row: ours came too late.
	ErrFenced = errors.New("fenced off")
	// ErrConflict says that rivals won every attempt until the wait was over.
	ErrConflict = errors.New("conflict")
	// ErrCancelled says that the caller went away before anything was written.
	ErrCancelled = errors.New("cancelled before the write")
	// ErrUnavailable is what every Unavailable is.
	ErrUnavailable = errors.New("unavailable")
)

// Unavailable says which backend could not be used, before anything was taken.
type Unavailable struct {
	Backend string
	Err     error
}

func (u *Unavailable) Error() string { return fmt.Sprintf("%s is unavailable: %v", u.Backend, u.Err) }

// Unwrap makes an Unavailable both ErrUnavailable and its cause.
func (u *Unavailable) Unwrap() []error { return []error{ErrUnavailable, u.Err} }

// Numbers of MySQL and MariaDB errors.
const (
	lockWaitTimeout = 1205
	deadlock        = 1213
	noWait          = 3572 // FOR UPDATE NOWAIT; MariaDB says 1205
	recordChanged   = 1020 // MariaDB with innodb_snapshot_isolation, the default from 11.6 on
	interrupted     = 1317
	shutdown        = 1053
	killed          = 1927 // MariaDB
)

// IsContention reports whether err is contention: a lock wait time-out (1205, 3572), a deadlock
// (1213), or a row that a rival has changed since this transaction's snapshot (1020). 1205
// undoes one statement, the others the transaction: after any, roll back and try the whole of
// it again, in a new snapshot.
func IsContention(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Number {
	case lockWaitTimeout, deadlock, noWait, recordChanged:
		return true
	}
	return false
}

// NothingWritten names the error of an attempt that surely wrote nothing: a
// read, or a transaction that did not reach its COMMIT.
func NothingWritten(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrCancelled, context.Cause(ctx))
	case IsContention(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	default:
		return &Unavailable{Backend: "mysql", Err: err}
	}
}

// Indeterminate names the error of a write that was sent. Where the server
// answered with an error, or was never reached, nothing was written; where the
// answer is missing the error stays as it is, and the outcome unknown.
func Indeterminate(err error) error {
	var answer *mysql.MySQLError
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case IsContention(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case errors.As(err, &answer):
		// A server that is being stopped may answer so after the commit.
		if answer.Number == interrupted || answer.Number == shutdown || answer.Number == killed {
			return fmt.Errorf("write to mysql: %w", err)
		}
		return &Unavailable{Backend: "mysql", Err: err}
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, driver.ErrBadConn):
		return &Unavailable{Backend: "mysql", Err: err}
	default:
		return fmt.Errorf("write to mysql: %w", err)
	}
}
