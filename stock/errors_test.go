package stock_test

import (
	"context"
	"errors"
	"fmt"
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
