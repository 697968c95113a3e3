package lockstest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"oversell/locks"
	"oversell/stock"
)

// TestUnlessStalled checks that a failed check is repeated only if the process stalled during the
// check, a backend was unavailable, or a renewal was late. No check may run more than attempts times.
func TestUnlessStalled(t *testing.T) {
	wrong := errors.New("wrong")
	for _, c := range []struct {
		name    string
		limit   time.Duration
		results []error // of the attempts; unlessStalled returns the last result
		busy    bool    // it is inconclusive
	}{
		{"passes at once", 0, []error{nil}, false},
		{"fails on a calm machine", time.Hour, []error{wrong}, false},
		{"contradicts its card on one that stood still", 0, []error{remote(contradiction{wrong})}, false},
		{"fails once on one that stood still", 0, []error{wrong, nil}, false},
		{"is unavailable at first", time.Hour, []error{stock.ErrUnavailable, nil}, false},
		{"renews too late at first", time.Hour, []error{fmt.Errorf("%w: %w", locks.ErrLost, locks.ErrLate), nil}, false},
		{"is unavailable each time", time.Hour, []error{stock.ErrUnavailable, stock.ErrUnavailable, stock.ErrUnavailable}, false},
		{"is unavailable each time on one that stood still", 0, []error{stock.ErrUnavailable, stock.ErrUnavailable, stock.ErrUnavailable}, false},
		{"fails each time", 0, []error{wrong, wrong, wrong}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			err := unlessStalled(t.Context(), c.limit, func() error {
				if ran == len(c.results) {
					t.Fatal("one attempt too many")
				}
				time.Sleep(20 * time.Millisecond)
				ran++
				return c.results[ran-1]
			})
			if ran != len(c.results) || !errors.Is(err, c.results[ran-1]) || errors.Is(err, ErrBusy) != c.busy {
				t.Errorf("%d attempts and %v, want %d and %v, inconclusive: %t", ran, err, len(c.results), c.results[len(c.results)-1], c.busy)
			}
		})
	}
}
