package stock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"

	"oversell/stock"
)

// TestContention checks which server errors mean that another transaction locked or changed the
// row. After such an error, no write has happened, and the transaction can be repeated.
func TestContention(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]bool{
		1205: true,  // lock wait time-out
		1213: true,  // deadlock
		3572: true,  // NOWAIT
		1020: true,  // MariaDB: changed since the snapshot
		1969: true,  // MariaDB's limit of time
		3024: true,  // MySQL's limit of time
		1062: false, // duplicate key
		1317: false, // interrupted
		1146: false, // no such table
	} {
		err := fmt.Errorf("write: %w", &mysql.MySQLError{Number: number})
		if got := stock.IsContention(err); got != want {
			t.Errorf("%d is contention: %t, want %t", number, got, want)
		}
		for name, named := range map[string]error{
			"NothingWritten": stock.NothingWritten(t.Context(), err), "Indeterminate": stock.Indeterminate(err),
		} {
			if got := errors.Is(named, stock.ErrConflict); got != want {
				t.Errorf("%s(%d) = %v; a conflict: %t, want %t", name, number, named, got, want)
			}
		}
	}
	if stock.IsContention(context.DeadlineExceeded) || stock.IsContention(nil) {
		t.Error("contention without an error of the server")
	}
}

// TestUnknownOutcomes checks the server errors that may come after the COMMIT: none of them proves that
// nothing was written. Any other server error does.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for number, unknown := range map[uint16]bool{1317: true, 1053: true, 1927: true, 1180: true, 1047: false, 1290: false, 1205: false} {
		err := stock.Indeterminate(fmt.Errorf("commit: %w", &mysql.MySQLError{Number: number}))
		if committed := stock.Committed(&mysql.MySQLError{Number: number}); errors.Is(committed, stock.ErrUnavailable) && unknown {
			t.Errorf("%d after COMMIT: %v; want an unknown outcome", number, committed)
		}
		if proven := errors.Is(err, stock.ErrUnavailable) || errors.Is(err, stock.ErrConflict); proven == unknown {
			t.Errorf("%d: %v; want an unknown outcome: %t", number, err, unknown)
		}
	}
}

// TestNotSent checks that a connection that ends before the login proves that nothing was sent. An error
// on an open connection proves nothing.
func TestNotSent(t *testing.T) {
	t.Parallel()
	server, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	db, err := stock.Open(fmt.Sprintf("user:password@tcp(%s)/oversell", server.Addr()), 1)
	if err != nil {
		t.Fatal(err)
	}
	err = db.WithContext(t.Context()).Exec("UPDATE db_stock SET count = 0").Error
	if !stock.NotSent(err) || !errors.Is(stock.Indeterminate(err), stock.ErrUnavailable) {
		t.Errorf("before the login: %v: not sent: %t, %v", err, stock.NotSent(err), stock.Indeterminate(err))
	}
	for _, err := range []error{
		nil, mysql.ErrInvalidConn, &net.OpError{Op: "read", Err: net.ErrClosed}, &mysql.MySQLError{Number: 1045}, context.DeadlineExceeded,
	} {
		if stock.NotSent(fmt.Errorf("write: %w", err)) {
			t.Errorf("%v proves that nothing was sent", err)
		}
	}
}
