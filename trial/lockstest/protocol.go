package lockstest

import (
	"errors"
	"slices"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

const (
	doPing    = "ping"
	doAcquire = "acquire"
	doRelease = "release"
	doVerify  = "verify" // Lock.Verify
	doLost    = "lost"   // waits until the lock's context ends, but no longer than Wait
	doDeduct  = "deduct"
	doCancel  = "cancel" // ends the context of another command
	doResume  = "resume" // continues a sale that has stopped at its step
	doClear   = "clear"  // deletes the backend's data of a key
	doContend = "contend"
	doChurn   = "churn"
	doStorm   = "storm"
)

type command struct {
	ID       int    `json:"id"`
	Do       string `json:"do"`
	Strategy string `json:"strategy,omitempty"`
	// Of is the ID of the command to cancel or resume, or of the command that acquired the lock.
	Of int `json:"of,omitempty"`

	Request locks.Request `json:"request,omitzero"`
	Order   stock.Order   `json:"order,omitzero"`
	// Step is the traced step at which a sale stops, only the first time. An acquisition reports that
	// it has reached Step, but does not stop.
	Step api.Step `json:"step,omitempty"`
	// Cancelled means that the context of the command has ended before the command begins.
	Cancelled bool          `json:"cancelled,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`

	Tasks  int    `json:"tasks,omitempty"`  // number of concurrent tasks
	Rounds int    `json:"rounds,omitempty"` // number of rounds of each task
	Dir    string `json:"dir,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
}

type reply struct {
	ID int `json:"id"`
	// Reached means only that the command is at its step. Its result follows in a later reply.
	Reached bool          `json:"reached,omitempty"`
	Error   *remoteError  `json:"error,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	Fence   int64         `json:"fence,omitempty"`
	Receipt stock.Receipt `json:"receipt,omitzero"`
	// Outcomes has the number of sales for each outcome.
	Outcomes map[string]int `json:"outcomes,omitempty"`
}

// err returns nil if Error is nil. A nil pointer in an error interface would not equal nil.
func (r reply) err() error {
	if r.Error == nil {
		return nil
	}
	return r.Error
}

var errCancelled = errors.New("the command was cancelled")

// remoteError is a worker's error in the test process. errors.Is gives the same result in both.
type remoteError struct {
	Text    string   `json:"text"`
	Matches []string `json:"is,omitempty"`
	// NothingTaken is the result of locks.NothingTaken in the worker.
	NothingTaken bool `json:"nothing_taken,omitempty"`
}

func (e *remoteError) Error() string { return e.Text }

// Is reports whether errors.Is(err, target) was true in the worker.
func (e *remoteError) Is(target error) bool { return slices.Contains(e.Matches, target.Error()) }

func remote(err error) *remoteError {
	if err == nil {
		return nil
	}
	e := &remoteError{Text: err.Error(), NothingTaken: locks.NothingTaken(err)}
	for _, known := range []error{
		locks.ErrNotAcquired, locks.ErrNotHeld, locks.ErrLost, stock.ErrSoldOut, stock.ErrUnknownProduct, stock.ErrFenced,
		stock.ErrConflict, stock.ErrCancelled, stock.ErrUnavailable, errCancelled, locks.ErrLate, errContradiction,
	} {
		if errors.Is(err, known) {
			e.Matches = append(e.Matches, known.Error())
		}
	}
	return e
}

const sold = "sold"

func outcomeOf(err error) string {
	switch e := remote(err); {
	case e == nil:
		return sold
	case len(e.Matches) > 0 && e.NothingTaken:
		return e.Matches[0]
	default:
		return "unknown: " + e.Text
	}
}
