// Package stepper leads two clients through one strategy, step by step. Both buy one piece of the
// same product, each on a replica of its own, and both stop at every step of the strategy. The user
// chooses which client continues, and so can cause a lost update by hand. A [Graph] has every order of
// the steps, and [Lab.Solve] plays one that loses an update. The replicas and servers are real, so a
// client may have to wait for the lock.
package stepper

import (
	"context"
	"errors"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/player"
	"oversell/lab/rig"
)

// Pieces is the stock at the start of a round.
const Pieces = 10

// Lab is a running lab with the strategy that the clients use.
type Lab struct {
	Strategy string
	// Lease is the lease of each request, a minute at most. 0 means the default lease of the replica.
	// Set Lease only for strategies that let a request choose its lease.
	Lease time.Duration

	bed *player.Testbed
	// rankFences numbers the fences of a round from 1, because etcd's fences rise over all rounds.
	rankFences bool
}

// Open returns a Lab that uses the first two replicas of a lab for the clients A and B.
func Open(on *rig.Rig, strategy string) (*Lab, error) {
	if len(on.Addresses().Replicas) < 2 {
		return nil, errors.New("stepper: two clients need two replicas")
	}
	return &Lab{Strategy: strategy, bed: player.Unrecorded(on)}, nil
}

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
}

// Round is one purchase by A and one by B, from a stock of ten. Close ends it.
type Round struct {
	// Log has all observations, in order; Row is the present stock in the database.
	Log []Entry
	Row int
	// Product is the product that both buy: a new one in each round.
	Product int64

	lab     *Lab
	walk    *player.Walk
	moves   int
	fences  []int64 // in the order of the grants
	clients [2]*clientState
}

// Begin starts a round with a new product of ten pieces. Neither client has sent its request yet.
func (l *Lab) Begin(ctx context.Context) (*Round, error) {
	walk, err := l.bed.Walk(ctx, l.Strategy, Pieces, l.Lease)
	if err != nil {
		return nil, err
	}
	return &Round{lab: l, walk: walk, Product: walk.Product, Row: Pieces, clients: [2]*clientState{{read: unread}, {read: unread}}}, nil
}

// Close lets both requests run to their ends.
func (r *Round) Close() error { return r.walk.Close() }

// State returns the state of the client at the last observation.
func (r *Round) State(client Client) State { return r.clients[client].state }

func (r *Round) free(client Client) bool {
	return r.State(client) == Idle || r.State(client) == Stopped
}

// Go lets a client continue, up to its next step, its answer or an apparent wait for the lock. A
// waiting client continues by itself as soon as it can, and Look observes it.
func (r *Round) Go(ctx context.Context, client Client) (err error) {
	c, other := r.clients[client], client.other()
	move := chaos.Move{Do: chaos.Resumes, Client: int(client)}
	switch c.state {
	case Idle: // it waits for the lock for as long as the service allows
		move.Do, move.At, move.For = chaos.Sells, chaos.EveryStep, chaos.Amount{N: 60}
		fallthrough
	case Stopped:
		r.moves++
		err = r.walk.Do(ctx, move)
	case Waiting:
		err = r.walk.Settle(ctx, int(client))
	case Ended:
		return nil
	}
	if err == nil {
		err = r.look(ctx, client, true)
	}
	if err == nil && r.State(other) == Waiting && (c.state == Ended || frees(c.paused.Step)) {
		err = r.walk.Settle(ctx, int(other))
	}
	if err == nil && r.State(other) == Waiting {
		err = r.look(ctx, other, true)
	}
	return err
}

// Look appends changes of the clients' states to the Log. news is true if there was a change.
func (r *Round) Look(ctx context.Context) (news bool, err error) {
	before := len(r.Log)
	for client := A; client <= B && err == nil; client++ {
		if r.State(client) == Stopped || r.State(client) == Waiting {
			err = r.look(ctx, client, false)
		}
	}
	return len(r.Log) > before, err
}

// look observes a client. If it has had the time for its next step, it may be one that waits.
func (r *Round) look(ctx context.Context, client Client, settled bool) error {
	c := r.clients[client]
	now, err := r.walk.Look(ctx, int(client))
	switch {
	case err != nil:
		return err
	case now.Op != nil:
		c.state, c.op = Ended, *now.Op
		return r.log(ctx, client, "", answer(c.op), now.Sent)
	case now.Paused != nil && now.Paused.Since.Equal(c.paused.Since):
		return nil
	case now.Paused != nil:
		c.state, c.paused, c.waits = Stopped, *now.Paused, false
		return r.arrived(ctx, client, c.paused)
	}
	c.state = Waiting // also if a replica has resumed it after half an hour
	if !settled || c.waits {
		return nil
	}
	c.waits = true
	why := waits()
	if !Blocks(Of(r.Log, client.other())) {
		why = retries()
	}
	return r.log(ctx, client, "", why, now.Sent)
}

func (r *Round) arrived(ctx context.Context, client Client, at api.Paused) (err error) {
	c := r.clients[client]
	if at.Step == api.Read { // the client has just read, and the other client takes no step meanwhile
		if c.read, err = r.walk.Stock(ctx); err != nil {
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
	r.Row, err = r.walk.Stock(ctx)
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
