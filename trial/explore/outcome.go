package explore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oversell/locks"
)

// End is how the sale of one client ended.
type End string

// These are the ends of a sale.
const (
	Sold    End = "sold"
	Crashed End = "crashed"
	Stalled End = "waited in vain"
	Aborted End = "gave up"       // and took nothing
	Unknown End = "got no answer" // so it may have taken a piece
)

// Ending is the result of one schedule.
type Ending struct {
	Ends []End
	Left int
	Two  bool // two clients held the lock at the same time
	Late bool // a sale took as long as a lease, so a client waited until a lease ended
}

// Oversold reports whether an update was lost, or a piece was taken that no client has.
func (o Ending) Oversold() bool {
	sold, unsure, taken := 0, 0, initialCount-o.Left
	for _, e := range o.Ends {
		switch e {
		case Sold:
			sold++
		case Unknown, Crashed:
			unsure++
		}
	}
	return sold > taken || taken > sold+unsure
}

// String describes the outcome in one line.
func (o Ending) String() string {
	var ends []string
	for i, e := range o.Ends {
		ends = append(ends, letter(i)+" "+string(e))
	}
	text := fmt.Sprintf("%s; %d of %d are left", strings.Join(ends, ", "), o.Left, initialCount)
	if o.Two {
		text += "; two held the lock at the same time"
	}
	return text
}

func (x *schedule) outcome() (o Ending, err error) {
	x.mu.Lock()
	o.Two, o.Left = x.two, x.row.count
	x.mu.Unlock()
	o.Late = time.Since(x.began) >= lease
	if x.counter != nil {
		for range 10 { // each connection that a fault has broken costs a try
			if o.Left, err = x.counter.Count(context.Background(), product); err == nil {
				break
			}
		}
		if err != nil {
			return o, err
		}
	}
	for _, c := range x.clients {
		o.Ends = append(o.Ends, endOf(c))
	}
	return o, nil
}

func endOf(c *client) End {
	switch {
	case c.crashed:
		return Crashed
	case c.err == nil:
		return Sold
	case !locks.NothingTaken(c.err):
		return Unknown
	case c.inVain:
		return Stalled
	default:
		return Aborted
	}
}
