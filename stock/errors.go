package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// These errors mean that no stock was taken. After any other error, stock may have been taken.
var (
	ErrSoldOut        = errors.New("sold out")
	ErrUnknownProduct = errors.New("this product does not exist")
	// ErrFenced means that the row has a higher fence. Claim rejects an equal fence, too.
	ErrFenced = errors.New("the row has a newer fence")
	// ErrConflict means that other transactions prevented every attempt.
	ErrConflict = errors.New("conflict with other transactions")
	// ErrCancelled means that the request was cancelled before the write.
	ErrCancelled = errors.New("cancelled before the write")
	// ErrUnavailable is in the chain of every Unavailable, so that errors.Is finds it.
	ErrUnavailable = errors.New("unavailable")
	// ErrInterrupted means that the server ended a statement early, and that the statement wrote nothing.
	ErrInterrupted = errors.New("the server ended the statement")
)

// Unavailable is the error for a backend that could not be used. No stock was taken.
type Unavailable struct {
	Backend string
	Err     error
}

func (u *Unavailable) Error() string { return fmt.Sprintf("%s is unavailable: %v", u.Backend, u.Err) }

// Unwrap returns ErrUnavailable and the cause, so that errors.Is finds both.
func (u *Unavailable) Unwrap() []error { return []error{ErrUnavailable, u.Err} }

// These are the numbers of errors of MySQL and MariaDB.
const (
	lockWaitTimeout = 1205
	deadlock        = 1213
	duplicate       = 1062
	noWait          = 3572 // FOR UPDATE NOWAIT; MariaDB returns 1205
	recordChanged   = 1020 // MariaDB with innodb_snapshot_isolation, the default from 11.6 on
	interrupted     = 1317
	shutdown        = 1053
	killed          = 1927 // MariaDB
	duringCommit    = 1180 // Galera: other nodes may have the transaction already
	statementTime   = 1969 // MariaDB's max_statement_time
	selectTime      = 3024 // MySQL's max_execution_time
	tooMany         = 1040 // connections of all users
	tooManyOfUser   = 1203
	userLimit       = 1226
)

// IsContention reports whether another transaction locked or changed the row, or whether a limit of the server
// ended the wait for it. If so, roll back and repeat the transaction: error 1205 undoes only one statement.
func IsContention(err error) bool {
	return isAnswer(err, lockWaitTimeout, deadlock, noWait, recordChanged, statementTime, selectTime)
}

// Interrupted returns the cause of an Unavailable if something ended one statement or one open connection: an
// administrator, a limit of the server or a proxy, perhaps this one alone. The next request shows whether the server serves.
func Interrupted(err error) (cause error) {
	u := (*Unavailable)(nil)
	if !errors.As(err, &u) {
		return nil
	}
	lost := []error{mysql.ErrInvalidConn, io.EOF, syscall.ECONNRESET, syscall.EPIPE}
	if isAnswer(err, interrupted, killed, statementTime, selectTime) || errors.Is(err, ErrInterrupted) ||
		!NotSent(err) && !errors.Is(err, os.ErrDeadlineExceeded) && slices.ContainsFunc(lost, func(e error) bool { return errors.Is(err, e) }) {
		return u.Err
	}
	return nil
}

// IsDuplicate reports whether the table has a row with the same unique key already.
func IsDuplicate(err error) bool { return isAnswer(err, duplicate) }

// isAnswer reports whether the server answered with one of the errors.
func isAnswer(err error, numbers ...uint16) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && slices.Contains(numbers, answer.Number)
}

// Found returns ErrUnknownProduct if err says that a query found no row, and otherwise err.
func Found(product int64, err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("product %d: %w", product, ErrUnknownProduct)
	}
	return err
}

// NothingWritten returns ErrCancelled, ErrConflict or ErrUnavailable, or the ErrUnknownProduct of Found. err is
// the error of a read, or of a transaction that did not send its COMMIT.
func NothingWritten(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrUnknownProduct):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrCancelled, context.Cause(ctx))
	case IsContention(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	default:
		return &Unavailable{Backend: "mysql", Err: err}
	}
}

// notConnected is the error of a connection that was not made: the server was not reached, TLS failed, or
// it refused the user. No statement was sent.
type notConnected struct{ error }

// Unwrap returns the cause.
func (n *notConnected) Unwrap() error { return n.error }

// NotSent reports whether err proves that nothing was sent: there was no connection.
func NotSent(err error) bool {
	var dial *net.OpError
	var connecting *notConnected
	return errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, driver.ErrBadConn) || errors.As(err, &connecting)
}

// Indeterminate returns ErrConflict or ErrUnavailable if err proves that no write happened: a
// failed connection, or a server error except the four below. Otherwise, the outcome is unknown.
func Indeterminate(err error) error {
	// A server may return these after the commit: the first three when it shuts down, the last one when
	// a node of Galera loses the others.
	unknown := []uint16{interrupted, shutdown, killed, duringCommit}
	var answer *mysql.MySQLError
	switch {
	case err == nil:
		return nil
	case NotSent(err):
		return &Unavailable{Backend: "mysql", Err: err}
	case errors.As(err, &answer) && !slices.Contains(unknown, answer.Number):
		return NothingWritten(context.Background(), err)
	default:
		return fmt.Errorf("write to mysql: %w", err)
	}
}

// Committed is Indeterminate for the error of a COMMIT. MariaDB's limit of time may end it, too, but never the commit
// of a single statement.
func Committed(err error) error {
	if isAnswer(err, statementTime) {
		return fmt.Errorf("commit to mysql: %w", err)
	}
	return Indeterminate(err)
}
