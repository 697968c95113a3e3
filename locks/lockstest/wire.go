package lockstest

import (
	"context"
	"errors"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// What a worker can be told to do.
const (
	doPing    = "ping"
	doAcquire = "acquire" // answers when granted or refused
	doRelease = "release"
	doCheck   = "check" // what Hold.Check says now
	doLost    = "lost"  // waits until the hold's context ends, or Wait is over
	doDeduct  = "deduct"
	doCancel  = "cancel" // ends the context of another command
	doGo      = "go"     // lets a deduction go on that is paused at a step
	doClear   = "clear"  // wipes the key's state, whoever holds it
	doCount   = "count"  // what is left of a product, where the strategy keeps it
	doContend = "contend"
	doChurn   = "churn"
	doStorm   = "storm"
)

// command is one line to a worker.
type command struct {
	ID       int    `json:"id"`
	Do       string `json:"do"`
	Strategy string `json:"strategy,omitempty"`
	// Of is the id of an earlier command: the acquire that a release means,
	// the deduction that may go on.
	Of int `json:"of,omitempty"`

	Request locks.Request `json:"request,omitzero"`
	Order   stock.Order   `json:"order,omitzero"`
	// Step is where a deduction is to be paused, once, or an acquisition tells that
	// it passes.
	Step api.Step `json:"step,omitempty"`
	// Cancelled: the command is given a context that has ended already.
	Cancelled bool          `json:"cancelled,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`

	Tasks  int    `json:"tasks,omitempty"`  // side by side
	Rounds int    `json:"rounds,omitempty"` // of each task
	Dir    string `json:"dir,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
}

// reply is one line from a worker.
type reply struct {
	ID int `json:"id"`
	// Paused: no answer yet, the deduction stands at its step.
	Paused  bool          `json:"paused,omitempty"`
	Fault   *fault        `json:"fault,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	Fence   int64         `json:"fence,omitempty"`
	Receipt stock.Receipt `json:"receipt,omitzero"`
	// Kept: the strategy keeps the stock itself, and the receipt says what remains.
	Kept bool `json:"kept,omitempty"`
	// Ended: the hold's context has ended; the fault is its cause.
	Ended bool           `json:"ended,omitempty"`
	Tally map[string]int `json:"tally,omitempty"`
}

// errCancelled is the cause with which a worker ends a context when told to.
var errCancelled = errors.New("the caller went away")

// fault is an error that went over the wire: its text, and what errors.Is knew
// it to be in the worker.
type fault struct {
	Text  string   `json:"text"`
	Known []string `json:"is,omitempty"`
	// Backend is the one that a stock.Unavailable names.
	Backend string `json:"backend,omitempty"`
	// Sure is locks.NothingTaken.
	Sure bool `json:"sure,omitempty"`
}

func (f *fault) Error() string { return f.Text }

// Is makes errors.Is answer as it did in the worker.
func (f *fault) Is(target error) bool {
	name := nameOf(target)
	for _, is := range f.Known {
		if is == name && name != "" {
			return true
		}
	}
	return false
}

type sentinel struct {
	name string
	err  error
}

func sentinels() []sentinel {
	return []sentinel{
		{"not-acquired", locks.ErrNotAcquired},
		{"not-held", locks.ErrNotHeld},
		{"lost", locks.ErrLost},
		{"sold-out", stock.ErrSoldOut},
		{"unknown-product", stock.ErrUnknownProduct},
		{"fenced", stock.ErrFenced},
		{"conflict", stock.ErrConflict},
		{"cancelled", stock.ErrCancelled},
		{"unavailable", stock.ErrUnavailable},
		{"the-cause", errCancelled},
		{"context-cancelled", context.Canceled},
	}
}

func nameOf(target error) string {
	for _, s := range sentinels() {
		if s.err == target { //nolint:errorlint // the sentinel itself is meant
			return s.name
		}
	}
	return ""
}

// faultOf prepares err for the wire; nil stays nil.
func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	f := &fault{Text: err.Error(), Sure: locks.NothingTaken(err)}
	for _, s := range sentinels() {
		if errors.Is(err, s.err) {
			f.Known = append(f.Known, s.name)
		}
	}
	var down *stock.Unavailable
	if errors.As(err, &down) {
		f.Backend = down.Backend
	}
	return f
}

// err is the fault as an error, without the trap of a nil pointer in an interface.
func (r reply) err() error {
	if r.Fault == nil {
		return nil
	}
	return r.Fault
}

// outcomeOf is the one word for a deduction's end that the tally counts.
func outcomeOf(err error) string {
	f := faultOf(err)
	switch {
	case f == nil:
		return sold
	case len(f.Known) > 0 && f.Sure:
		return f.Known[0]
	default:
		return "unknown: " + f.Text
	}
}

const sold = "sold"
