package stepper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/replica"
)

// Who is one of the two clients.
type Who int

// The clients, A on the first replica and B on the second.
const (
	A Who = iota
	B
)

// String gives the client's letter.
func (w Who) String() string { return [...]string{A: "A", B: "B"}[w] }

func (w Who) other() Who { return 1 - w }

// State is what a client is doing.
type State int

// The states of a client.
const (
	Idle    State = iota // has not asked yet
	Stopped              // is stopped at a step, until it is told to go on
	Waiting              // neither stopped nor ended: waits for the lock
	Ended                // has its answer
)

const (
	// soon is how long a client that goes on has for its next step before it is said
	// to wait for its rival. A step takes milliseconds; on a busy machine, more.
	soon = 500 * time.Millisecond
	// alone is the same where there is no rival to wait for.
	alone = 10 * time.Second
	// farewell bounds the end of a round. Who is slower than that is cut off.
	farewell = 10 * time.Second
)

// Line is something that was seen of a client.
type Entry struct {
	Who   Who
	Step  string // empty: not a step, but a wait, or the answer
	Words Words
	Row   int // the row's count just afterwards
}

// State is what its client was doing then.
func (l Entry) State() State {
	switch {
	case l.Step != "":
		return Stopped
	case l.Words == waits():
		return Waiting
	default:
		return Ended
	}
}

type client struct {
	state State
	at    replica.Stopped // the last one
	read  int
	waits bool // and that was said
	op    history.Op
	ended chan struct{}
}

// Round is one piece bought by A and one by B, from a shelf of ten. Close ends it.
type Round struct {
	// Lines are all that was seen, in order; Row is the count now.
	Lines []Entry
	Row   int

	lab     *Lab
	product int64
	clients [2]*client
	cancel  context.CancelFunc
	ctx     context.Context // of the clients' requests
}

// Begin puts ten pieces on the shelf. Nobody has asked for one yet.
func (l *Lab) Begin(ctx context.Context) (*Round, error) {
	product, err := l.stocked(ctx)
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

// Close lets both clients run to their ends, as nobody steps them any more.
func (r *Round) Close() error {
	defer r.lab.replicas[A].HTTP.CloseIdleConnections()
	defer r.cancel()
	// Also when the round was interrupted: a replica would hold them for minutes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), farewell)
	defer cancel()
	err := errors.Join(r.lab.replicas[A].GoOn(ctx), r.lab.replicas[B].GoOn(ctx))
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

// State says what the client was doing when it was last looked at.
func (r *Round) State(who Who) State { return r.clients[who].state }

// free says whether the client can be told to go on.
func (r *Round) free(who Who) bool { return r.State(who) == Idle || r.State(who) == Stopped }

// Go lets a client go on, from the start or from its step, and returns when it is at the
// next one, or has its answer, or seems to wait for the lock. In the last case it goes
// on by itself as soon as it can: Look sees it.
func (r *Round) Go(ctx context.Context, who Who) error {
	c, rival := r.clients[who], r.clients[who.other()]
	switch c.state {
	case Idle:
		go func() {
			defer close(c.ended)
			c.op = r.lab.buy(r.ctx, who, r.product)
		}()
		c.state = Waiting
	case Stopped:
		if err := r.lab.replicas[who].LetGo(ctx, c.at.Owner); err != nil {
			return err
		}
		c.state = Waiting
	case Waiting: // is looked at once more
	case Ended:
		return nil
	}
	long := soon
	if rival.state == Idle || rival.state == Ended {
		long = alone
	}
	if err := r.await(ctx, who, long); err != nil {
		return err
	}
	if rival.state == Waiting && (c.state == Ended || frees(c.at.Step)) {
		return r.await(ctx, who.other(), soon)
	}
	return nil
}

// await looks until the client does not wait any more, or has for long enough.
func (r *Round) await(ctx context.Context, who Who, long time.Duration) error {
	c, enough := r.clients[who], time.After(long)
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

// Look asks the replicas where the clients are, and reports whether there is news.
func (r *Round) Look(ctx context.Context) (news bool, err error) {
	before := len(r.Lines)
	for i, c := range r.clients {
		if c.state == Idle || c.state == Ended {
			continue
		}
		if err := r.look(ctx, Who(i), c); err != nil {
			return false, err
		}
	}
	return len(r.Lines) > before, nil
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
		// Also one that was stopped: a replica holds nobody for longer than half an hour.
		c.state = Waiting
		return nil
	}
}

// arrived notes that the client is at its next step.
func (r *Round) arrived(ctx context.Context, who Who, at replica.Stopped) error {
	c := r.clients[who]
	c.state, c.at, c.waits = Stopped, at, false
	if at.Step == "read" { // just now; and the rival does not move meanwhile
		count, err := r.lab.count(ctx, r.product)
		if err != nil {
			return err
		}
		c.read = count
	}
	return r.note(ctx, who, at.Step, explain(at, c.read))
}

func (r *Round) note(ctx context.Context, who Who, step string, words Words) (err error) {
	r.Row, err = r.lab.count(ctx, r.product)
	r.Lines = append(r.Lines, Entry{who, step, words, r.Row})
	return err
}

// Over says whether both have their answers.
func (r *Round) Over() bool { return r.State(A) == Ended && r.State(B) == Ended }

// Stock compares what was sold with what has left the row, once the round is over.
func (r *Round) Stock() check.Conservation {
	return check.Stock([]history.Op{r.clients[A].op, r.clients[B].op}, Pieces, r.Row)
}

// Sentence says how the round ended; it is empty before it has.
func (r *Round) Sentence() Words {
	if !r.Over() {
		return Words{}
	}
	return sentence(r.Stock())
}
