// Package history holds what the clients of a run saw, request by request. It is the
// evidence: the checkers judge it, the reports summarise it, and nothing else is kept.
package history

import (
	"cmp"
	"slices"
	"time"

	"oversell/api"
)

// Outcome says what a client knows for certain once its request has ended.
type Outcome uint8

// The three outcomes. A request that got no answer is neither sold nor refused: the
// server may have taken the stock just before the connection broke.
const (
	// OK : the stock was taken, once.
	OK Outcome = iota + 1
	// Refused : surely nothing was taken.
	Refused
	// Unknown : timed out, the connection broke, or the service itself could not tell.
	Unknown
)

// String gives the outcome's name, such as "refused".
func (o Outcome) String() string {
	switch o {
	case OK:
		return "ok"
	case Refused:
		return "refused"
	case Unknown:
		return "unknown"
	default:
		return "no outcome"
	}
}

// The reasons that reports tell apart. The first block are outcomes of the service; its
// other outcomes are kept as they are.
const (
	Sold        = string(api.Sold)
	SoldOut     = string(api.SoldOut)
	NotAcquired = string(api.NotAcquired)
	Unavailable = string(api.Unavailable)

	// Unreachable : the connection was refused, so the request was never sent.
	Unreachable = "unreachable"
	// TimedOut : no answer within the client's patience.
	TimedOut = "timeout"
	// Broken : the connection ended before the whole answer was there.
	Broken = "connection_broken"
	// Interrupted : the run was stopped while the answer was still awaited.
	Interrupted = "interrupted"
	// NotUnderstood : there was an answer, but not one of this service.
	NotUnderstood = "not_understood"
)

// Op is one request, from the moment before its connection was opened or its first byte
// was sent until its answer was read. Call and Return are durations since the run's
// start on one monotonic clock, so that the Ops of all clients can be compared.
type Op struct {
	Client   int // 1 for the first client
	Strategy string
	Qty      int

	// Due is when an open loop meant to send it: Call is later when all connections were
	// busy. 0 in a closed loop, where nothing is due.
	Due    time.Duration
	Call   time.Duration
	Return time.Duration

	Outcome Outcome
	Reason  string // why, in one word: see the constants
	Status  int    // HTTP status, 0 without an answer
	Backend string // the backend that the service blames, if it names one
	Detail  string // the service's or the network's own words for a failure
	Replica string // the replica that answered, if it said so

	// Remaining is what a sale left on the shelf, by the service's own word. A sale of
	// Qty 0 is a read.
	Remaining    int
	HasRemaining bool // false: the service did not say

	Retries int
	Waited  time.Duration // in the lock's queue
	Held    time.Duration // inside the critical section
	Pooled  time.Duration // waiting for a database connection

	BytesIn   int
	BytesOut  int
	Connect   time.Duration // opening the connection; 0 when it was open already
	FirstByte time.Duration // from Call to the first byte of the answer; 0 without one
	Active    int           // clients at work when the request ended
}

// Elapsed is how long the customer waited, connecting included: since the request was
// due, and in a closed loop since it was sent.
func (o Op) Elapsed() time.Duration { return o.Late() + o.Served() }

// Late is how long the request was due before it was sent; 0 in a closed loop.
func (o Op) Late() time.Duration {
	if o.Due == 0 {
		return 0
	}
	return o.Call - o.Due
}

// Served is how long the answer took, counted from when the request was sent.
func (o Op) Served() time.Duration { return o.Return - o.Call }

// Failed reports whether the client went away with neither the goods nor a true "sold
// out". Sold out is a correct answer, and the point of the exercise.
func (o Op) Failed() bool {
	return o.Outcome == Unknown || o.Outcome == Refused && o.Reason != SoldOut
}

// History is everything that one run of one strategy recorded.
type History struct {
	Strategy string
	URL      string    // asked for by every request
	Start    time.Time // wall clock at duration 0
	Clients  int       // as planned
	Loops    int       // as planned, for each client
	Ops      []Op      // in the order of Call

	Rate    float64       // requests due in a second; 0: a closed loop
	Length  time.Duration // as planned: when the clients asked no more; 0: when all was sent
	Stopped bool          // before its time
}

// Merge puts the clients' own records into one, in the order of Call.
func Merge(clients [][]Op) []Op {
	all := slices.Concat(clients...)
	slices.SortStableFunc(all, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	return all
}

// Taken adds up the pieces of all requests with this outcome.
func Taken(ops []Op, outcome Outcome) int {
	pieces := 0
	for i := range ops {
		if ops[i].Outcome == outcome {
			pieces += ops[i].Qty
		}
	}
	return pieces
}

// Count counts the requests that match.
func Count(ops []Op, match func(*Op) bool) int {
	n := 0
	for i := range ops {
		if match(&ops[i]) {
			n++
		}
	}
	return n
}
