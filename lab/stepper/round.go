package stepper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/load"
)

// Client is one of the two clients.
type Client int

// The clients, A on the first replica and B on the second.
const (
	A Client = iota
	B
)

// String returns the client's letter.
func (c Client) String() string { return "AB"[c : c+1] }

func (c Client) other() Client { return 1 - c }

// State is the state of a client.
type State int

// The states of a client.
const (
	Idle    State = iota // has sent no request yet
	Stopped              // is stopped at a step, until Go
	Waiting              // neither stopped nor ended: waits for the lock
	Ended                // has its answer
)

const (
	// stepTime and stepLooks limit the wait for a client's next step. After this time and this number of
	// looks at its replica, the client counts as waiting for the lock. A step takes milliseconds. On a
	// busy machine it takes longer, and so does each look.
	stepTime  = 500 * time.Millisecond
	stepLooks = 100
	// aloneTime is used instead of stepTime while the client cannot wait for the other one.
	aloneTime = 10 * time.Second
	// closeTime limits the end of a round. Requests that take longer are cancelled.
	closeTime = 10 * time.Second
)

// Entry is one observation of a client: it has reached a step, waits, or has its answer.
type Entry struct {
	Client Client   `json:"client"`
	Step   api.Step `json:"step,omitempty"` // empty for a wait or the answer
	Text   api.Text `json:"text"`
	Row    int      `json:"row"` // the stock in the database just afterwards
	Move   int      `json:"-"`   // the number of the round's move that led here, from 1
	// Commands are what the client has sent to the backends since its previous Entry.
	Commands []string `json:"commands,omitempty"`
}

// State returns the state of the client at that time.
func (e Entry) State() State {
	switch {
	case e.Step != "":
		return Stopped
	case e.Text == waits() || e.Text == retries():
		return Waiting
	default:
		return Ended
	}
}

type clientState struct {
	state  State
	paused api.Paused // its last step
	read   int
	waits  bool     // the log has its wait since that step
	sent   []string // the commands that the log has since that step
	op     history.Op
	ended  chan struct{}
}

// Round is one purchase by A and one by B, from a stock of ten. Close ends it.
type Round struct {
	// Log has all observations, in order; Row is the present stock in the database.
	Log []Entry
	Row int
	// Product is the product that both buy: a new one in each round.
	Product int64

	lab     *Lab
	moves   int
	fences  []int64 // in the order of the grants
	clients [2]*clientState
	cancel  context.CancelFunc
	ctx     context.Context // of the clients' requests
}

// Begin starts a round with a new product of ten pieces. Neither client has sent its request yet.
func (l *Lab) Begin(ctx context.Context) (*Round, error) {
	l.products++
	if err := l.replicas[A].SetStock(ctx, l.products, Pieces); err != nil {
		return nil, err
	}
	r := &Round{lab: l, Product: l.products, Row: Pieces}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for i := range r.clients {
		r.clients[i] = &clientState{ended: make(chan struct{}), read: unread}
		// An empty step means every step; no request takes more than 10,000 steps.
		every := api.Failpoint{Strategy: l.Strategy, Product: r.Product, Step: "", Times: 10_000, Commands: true}
		if err := l.replicas[i].Arm(ctx, every); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Close lets both requests run to their ends.
func (r *Round) Close() error {
	defer r.lab.replicas[A].HTTP.CloseIdleConnections()
	defer r.cancel()
	// ResumeAll must run even if r.ctx is cancelled, or requests would stay stopped for minutes.
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
func (r *Round) State(client Client) State { return r.clients[client].state }

func (r *Round) free(client Client) bool {
	return r.State(client) == Idle || r.State(client) == Stopped
}

// Go lets a client continue, up to its next step, its answer or an apparent wait for the lock. A
// waiting client continues by itself as soon as it can, and Look observes it.
func (r *Round) Go(ctx context.Context, client Client) error {
	c, other := r.clients[client], r.clients[client.other()]
	switch c.state {
	case Idle:
		go func() {
			defer close(c.ended)
			c.op = r.lab.buy(r.ctx, client, r.Product)
		}()
		c.state = Waiting
		r.moves++
	case Stopped:
		if err := r.lab.replicas[client].Resume(ctx, c.paused.Owner); err != nil {
			return err
		}
		c.state = Waiting
		r.moves++
	case Waiting:
	case Ended:
		return nil
	}
	limit := stepTime
	if other.state == Idle || other.state == Ended || r.lab.apart() {
		limit = aloneTime
	}
	if err := r.await(ctx, client, limit); err != nil {
		return err
	}
	if other.state == Waiting && (c.state == Ended || frees(c.paused.Step)) {
		return r.await(ctx, client.other(), stepTime)
	}
	return nil
}

func (r *Round) await(ctx context.Context, client Client, limit time.Duration) error {
	c, began := r.clients[client], time.Now()
	for looks := 0; looks < stepLooks || time.Since(began) < limit; looks++ {
		if _, err := r.Look(ctx); err != nil || c.state != Waiting {
			return err
		}
		if err := load.Sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("stepper: %w", err)
		}
	}
	if c.waits {
		return nil
	}
	c.waits = true
	why := waits()
	if !Blocks(Of(r.Log, client.other())) {
		why = retries()
	}
	f, err := r.lab.replicas[client].Failpoints(ctx)
	return errors.Join(err, r.log(ctx, client, "", why, r.sent(f)))
}

// sent returns the commands that the request of the round has sent since its last step. Each client
// uses a replica of its own, so the key names the request.
func (r *Round) sent(f api.Failpoints) []string {
	for _, s := range f.Senders {
		if s.Key == api.Key(r.Product) {
			return s.Commands
		}
	}
	return nil
}

// Look appends changes of the clients' states to the Log. news is true if there was a change.
func (r *Round) Look(ctx context.Context) (news bool, err error) {
	before := len(r.Log)
	for i, c := range r.clients {
		if c.state == Idle || c.state == Ended {
			continue
		}
		if err := r.look(ctx, Client(i), c); err != nil {
			return false, err
		}
	}
	return len(r.Log) > before, nil
}

func (r *Round) look(ctx context.Context, client Client, c *clientState) error {
	ended := false // before the failpoints are read, so that these have all commands of an ended request
	select {
	case <-c.ended:
		ended = true
	default:
	}
	f, err := r.lab.replicas[client].Failpoints(ctx)
	if err != nil {
		return err
	}
	for _, at := range f.Paused {
		if at.Key != api.Key(r.Product) {
			continue
		}
		if at.Since.Equal(c.paused.Since) {
			return nil
		}
		return r.arrived(ctx, client, at)
	}
	if ended {
		c.state = Ended
		return r.log(ctx, client, "", answer(c.op), r.sent(f))
	}
	// A stopped client may get here too: a replica resumes the request after half an hour.
	c.state = Waiting
	return nil
}

func (r *Round) arrived(ctx context.Context, client Client, at api.Paused) (err error) {
	c := r.clients[client]
	c.state, c.paused, c.waits = Stopped, at, false
	if at.Step == api.Read { // the client has just read, and the other client takes no step meanwhile
		if c.read, err = r.lab.count(ctx, r.Product); err != nil {
			return err
		}
	}
	if r.lab.rankFences && at.Step == api.Granted && at.Fence > 0 {
		if !slices.Contains(r.fences, at.Fence) {
			r.fences = append(r.fences, at.Fence)
		}
		at.Fence = int64(slices.Index(r.fences, at.Fence) + 1) // 1 for the round's first grant, 2 for the next one
	}
	err = r.log(ctx, client, at.Step, explain(at, c.read), at.Commands)
	c.sent = nil
	return err
}

// log appends an Entry. sent are the commands since the client's last step.
func (r *Round) log(ctx context.Context, client Client, step api.Step, text api.Text, sent []string) (err error) {
	c, known := r.clients[client], 0
	for known < min(len(sent), len(c.sent)) && sent[known] == c.sent[known] {
		known++
	}
	c.sent = sent
	r.Row, err = r.lab.count(ctx, r.Product)
	r.Log = append(r.Log, Entry{client, step, text, r.Row, r.moves, sent[known:]})
	return err
}

// Written returns the number of the move with which both clients had written the stock, or 0.
func Written(log []Entry) (move int) {
	var written [2]bool
	for _, e := range log {
		written[e.Client] = written[e.Client] || writes(e.Step, e.Text)
		if written == [2]bool{true, true} {
			return e.Move
		}
	}
	return 0
}

// Over reports whether both clients have their answers.
func (r *Round) Over() bool { return r.State(A) == Ended && r.State(B) == Ended }

// Stock compares the pieces sold with the pieces taken from the row. The round must be over.
func (r *Round) Stock() check.Conservation {
	return check.Stock([]history.Op{r.clients[A].op, r.clients[B].op}, Pieces, r.Row)
}

// Node returns the state of the round, without moves.
func (r *Round) Node() Node {
	n := Node{States: [2]State{r.State(A), r.State(B)}, Row: r.Row}
	if r.Over() {
		stock := r.Stock()
		n.End = &End{Lost: stock.Lost(), Wrong: stock.Verdict == api.Broken, Text: sentence(stock)}
	}
	return n
}
