package stepper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// Who is one of the two clients.
type Who int

// The clients, A on the first replica and B on the second.
const (
	A Who = iota
	B
)

// String returns the client's letter.
func (w Who) String() string { return [...]string{A: "A", B: "B"}[w] }

func (w Who) other() Who { return 1 - w }

// State is what a client is doing.
type State int

// The states of a client.
const (
	Idle    State = iota // has sent no request yet
	Stopped              // is stopped at a step, until Go
	Waiting              // neither stopped nor ended: waits for the lock
	Ended                // has its answer
)

const (
	// stepTime is the time for a step, after which the client counts as waiting for the
	// lock. A step takes milliseconds; on a busy machine, more.
	stepTime = 500 * time.Millisecond
	// aloneTime is the same where no other client can hold the lock.
	aloneTime = 10 * time.Second
	// closeTime limits the end of a round. Requests that take longer are cancelled.
	closeTime = 10 * time.Second
)

// Entry is one observation of a client.
type Entry struct {
	Who   Who
	Step  string // empty for a wait or the answer
	Words Words
	Row   int // the row's count just afterwards
}

// State returns the state of the client at that time.
func (e Entry) State() State {
	switch {
	case e.Step != "":
		return Stopped
	case e.Words == waits():
		return Waiting
	default:
		return Ended
	}
}

type client struct {
	state State
	at    api.Paused // its last step
	read  int
	waits bool // and there is an entry of it
	op    history.Op
	ended chan struct{}
}

// Round is one purchase by A and one by B, from a stock of ten. Close ends it.
type Round struct {
	// Log has all observations, in order; Row is the present count.
	Log []Entry
	Row int

	lab     *Lab
	product int64
	clients [2]*client
	cancel  context.CancelFunc
	ctx     context.Context // of the clients' requests
}

// Begin adds a product with ten pieces. Neither client has sent its request yet.
func (l *Lab) Begin(ctx context.Context) (*Round, error) {
	product, err := l.addProduct(ctx)
	if err != nil {
		return nil, err
	}
	r := &Round{lab: l, product: product, Row: Pieces}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for who := range r.clients {
		r.clients[who] = &client{ended: make(chan struct{})}
		if err := l.arm(ctx, Who(who), product); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Close lets both clients run to their ends.
func (r *Round) Close() error {
	defer r.lab.replicas[A].HTTP.CloseIdleConnections()
	defer r.cancel()
	// Also when the round was interrupted: the replica would stop them for minutes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), closeTime)
	defer cancel()
	err := errors.Join(r.lab.replicas[A].ResumeAll(ctx), r.lab.replicas[B].ResumeAll(ctx))
	for _, c := range r.clients {
		if c == nil || c.state == Idle {
			continue
		}
		select {
		case <-c.ended:
		case <-ctx.Done():
		}
	}
	return err
}

// State returns the state of the client at the last observation.
func (r *Round) State(who Who) State { return r.clients[who].state }

// free reports whether the client can continue.
func (r *Round) free(who Who) bool { return r.State(who) == Idle || r.State(who) == Stopped }

// Go lets a client continue. It returns when the client is at its next step, has its answer,
// or seems to wait for the lock. A waiting client continues by itself as soon as it can, and
// Look observes it.
func (r *Round) Go(ctx context.Context, who Who) error {
	c, other := r.clients[who], r.clients[who.other()]
	switch c.state {
	case Idle:
		go func() {
			defer close(c.ended)
			c.op = r.lab.buy(r.ctx, who, r.product)
		}()
		c.state = Waiting
	case Stopped:
		if err := r.lab.replicas[who].Resume(ctx, c.at.Owner); err != nil {
			return err
		}
		c.state = Waiting
	case Waiting:
	case Ended:
		return nil
	}
	limit := stepTime
	if other.state == Idle || other.state == Ended {
		limit = aloneTime
	}
	if err := r.await(ctx, who, limit); err != nil {
		return err
	}
	if other.state == Waiting && (c.state == Ended || frees(string(c.at.Step))) {
		return r.await(ctx, who.other(), stepTime)
	}
	return nil
}

// await observes until the client no longer waits, or the limit is over.
func (r *Round) await(ctx context.Context, who Who, limit time.Duration) error {
	c, enough := r.clients[who], time.After(limit)
	for {
		if _, err := r.Look(ctx); err != nil || c.state != Waiting {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("stepper: %w", context.Cause(ctx))
		case <-enough:
			if !c.waits {
				c.waits = true
				return r.note(ctx, who, "", waits())
			}
			return nil
		}
	}
}

// Look asks the replicas where the clients are, and reports whether anything changed.
func (r *Round) Look(ctx context.Context) (news bool, err error) {
	before := len(r.Log)
	for i, c := range r.clients {
		if c.state == Idle || c.state == Ended {
			continue
		}
		if err := r.look(ctx, Who(i), c); err != nil {
			return false, err
		}
	}
	return len(r.Log) > before, nil
}

func (r *Round) look(ctx context.Context, who Who, c *client) error {
	at, stopped, err := r.lab.stopped(ctx, who, r.product)
	switch {
	case err != nil:
		return err
	case stopped && at.Since.Equal(c.at.Since):
		return nil
	case stopped:
		return r.arrived(ctx, who, at)
	}
	select {
	case <-c.ended:
		c.state = Ended
		return r.note(ctx, who, "", told(c.op))
	default:
		// Also one that was stopped: a replica stops no request for longer than half an hour.
		c.state = Waiting
		return nil
	}
}

// arrived logs that the client is at its next step.
func (r *Round) arrived(ctx context.Context, who Who, at api.Paused) error {
	c := r.clients[who]
	c.state, c.at, c.waits = Stopped, at, false
	if at.Step == "read" { // just now, and the other client does not move meanwhile
		count, err := r.lab.count(ctx, r.product)
		if err != nil {
			return err
		}
		c.read = count
	}
	return r.note(ctx, who, string(at.Step), explain(at, c.read))
}

func (r *Round) note(ctx context.Context, who Who, step string, words Words) (err error) {
	r.Row, err = r.lab.count(ctx, r.product)
	r.Log = append(r.Log, Entry{who, step, words, r.Row})
	return err
}

// Over reports whether both clients have their answers.
func (r *Round) Over() bool { return r.State(A) == Ended && r.State(B) == Ended }

// Stock compares the pieces sold with the pieces taken from the row, once the round is over.
func (r *Round) Stock() check.Conservation {
	return check.Stock([]history.Op{r.clients[A].op, r.clients[B].op}, Pieces, r.Row)
}

// Sentence says how the round ended. It is empty before the end.
func (r *Round) Sentence() Words {
	if !r.Over() {
		return Words{}
	}
	return sentence(r.Stock())
}
