package explore

import (
	"fmt"
	"time"
)

// Bounds limits the clients and the faults of one schedule.
type Bounds struct {
	Clients     int  `json:"clients"`
	Pauses      int  `json:"pauses"`       // of a client, for up to 1.6 leases
	Crashes     int  `json:"crashes"`      // of a client
	LostReplies int  `json:"lost_replies"` // a server executes a command, and the connection breaks
	Failovers   int  `json:"failovers"`    // a Redis is replaced by an empty one
	Expiries    int  `json:"expiries"`     // ZooKeeper ends the session of a client
	Fenced      bool `json:"fenced"`       // the sales are fenced
}

// Limit is the number of faults of one kind in a schedule.
type Limit struct {
	N    *int
	Flag string // of oversell explore
	// One and Many name the fault.
	One, Many string
}

// Limits returns the limits of all kinds of faults.
func (b *Bounds) Limits() []Limit {
	return []Limit{
		{&b.Pauses, "pauses", "pause", "pauses"},
		{&b.Crashes, "crashes", "crash", "crashes"},
		{&b.LostReplies, "lost-replies", "lost reply", "lost replies"},
		{&b.Failovers, "failovers", "fail-over", "fail-overs"},
		{&b.Expiries, "expiries", "expired session", "expired sessions"},
	}
}

// String names the clients and the faults.
func (b Bounds) String() string {
	text := fmt.Sprintf("%d clients", b.Clients)
	for _, l := range b.Limits() {
		switch n := *l.N; n {
		case 0:
		case 1:
			text += ", 1 " + l.One
		default:
			text += fmt.Sprintf(", %d %s", n, l.Many)
		}
	}
	if b.Fenced {
		text += ", fenced"
	}
	return text
}

const (
	product = 1
	lease   = 200 * time.Millisecond
	// wait is longer than the lease of a crashed holder. A client that waits in vain has stalled.
	wait = 10 * lease
	// leap is how far the clock goes on in one move, unless a client sends a message earlier. It is
	// short, so that grants on their way become stale one by one.
	leap = 2 * lease / 5
	// longestPause is longer than a lease and the time until the next client has acquired the lock.
	longestPause = 8 * lease / 5
	tick         = lease / 40
	// longestEnd is longer than any goroutine of a closed client goes on, such as a release that is
	// repeated.
	longestEnd = 30 * time.Second
	// endless is the number of moves after which a schedule is given up.
	endless = 3000
)
