// Package history holds the requests that the clients of a run recorded. Checks and reports use
// only this history, because no other data of a run are stored.
package history

import (
	"cmp"
	"slices"
	"time"

	"oversell/api"
)

// Outcome says whether a request took stock, as far as its client can know.
type Outcome uint8

// A request that was sent but not answered is Unknown: the service may have taken the stock.
const (
	OK      Outcome = iota + 1 // the stock was taken, once
	Refused                    // no stock was taken
	Unknown                    // a time-out, a broken connection, or a service that did not know
)

// Reports distinguish these values of Op.Reason. The service's other outcomes stay unchanged.
const (
	Sold        = string(api.Sold)
	SoldOut     = string(api.SoldOut)
	NotAcquired = string(api.NotAcquired)
	Unavailable = string(api.Unavailable)

	Unreachable   = "unreachable"       // the connection was refused, so nothing was sent
	TimedOut      = "timeout"           // no answer within the client's time-out
	Broken        = "connection_broken" // the connection ended before the whole answer was received
	Interrupted   = "interrupted"       // the run was stopped before the answer was received
	NotUnderstood = "not_understood"    // the answer was not one of this service
)

// Op is one request, until its answer was read. Call and Return are durations since the run's start
// on one monotonic clock, so the Ops of all clients can be compared.
type Op struct {
	Client   int // 1 for the first client
	Strategy string
	Qty      int

	// Due is when an open loop should have sent the request. In a closed loop, Due is 0.
	Due    time.Duration
	Call   time.Duration
	Return time.Duration

	Outcome Outcome
	Reason  string // one of the constants, or an outcome of the service
	Status  int    // HTTP status; 0 without an answer
	Backend string // the unavailable backend, if the service names one
	Detail  string // the error text of the service or of the network
	Replica string // the replica that answered, if it is known
	// Owner is that of the request's Events. Without an answer, it is not known.
	Owner string `json:"owner,omitempty"`

	// Remaining is the stock after the sale. A sale of Qty 0 is a read.
	Remaining    int
	HasRemaining bool // whether the service reported Remaining

	Retries int
	Waited  time.Duration // for the lock
	Held    time.Duration // inside the critical section
	Pooled  time.Duration // for a database connection

	BytesIn   int
	BytesOut  int
	Connect   time.Duration // opening the connection; 0 if it was open already
	FirstByte time.Duration // from Call to the first byte of the answer; 0 without one
	Active    int           // running clients when the request ended
}

// Elapsed is the response time, with the time to connect. In an open loop, it counts from Due.
func (o Op) Elapsed() time.Duration { return o.Late() + o.Served() }

// Late returns the time from when the request was due until it was sent; 0 in a closed loop.
func (o Op) Late() time.Duration {
	if o.Due == 0 {
		return 0
	}
	return o.Call - o.Due
}

// Served returns the response time since the request was sent.
func (o Op) Served() time.Duration { return o.Return - o.Call }

// Failed reports whether a request neither bought nor was refused because of "sold out".
func (o Op) Failed() bool {
	return o.Outcome == Unknown || o.Outcome == Refused && o.Reason != SoldOut
}

// Answered reports whether an answer was received.
func (o Op) Answered() bool {
	switch o.Reason {
	case Unreachable, TimedOut, Broken, Interrupted:
		return false
	}
	return true
}

// History is everything that one run of one strategy recorded.
type History struct {
	Strategy string
	URL      string    // of every request
	Start    time.Time // wall clock at duration 0
	Clients  int       // planned number
	Loops    int       // planned number, for each client
	Ops      []Op      // in the order of Call

	Rate    float64       // requests due in a second; 0 in a closed loop
	Length  time.Duration // planned time after which clients send no more; 0 means no limit
	Stopped bool          // the run was stopped before its planned end

	Load   float64 // share of the cores that the sending process took, 0 to 1; 0 where it is not known
	Others float64 // share that neither this process took nor those that it has started
}

// Merge joins the records of all clients, in the order of Call.
func Merge(clients [][]Op) []Op {
	all := slices.Concat(clients...)
	slices.SortStableFunc(all, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	return all
}

// Taken returns the number of pieces in all requests with the given outcome.
func Taken(ops []Op, outcome Outcome) (pieces int) {
	for i := range ops {
		if ops[i].Outcome == outcome {
			pieces += ops[i].Qty
		}
	}
	return pieces
}

// Count returns the number of requests for which match returns true.
func Count(ops []Op, match func(*Op) bool) (n int) {
	for i := range ops {
		if match(&ops[i]) {
			n++
		}
	}
	return n
}
