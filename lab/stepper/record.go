package stepper

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"oversell/api"
)

// Graph has the states that the two clients of a strategy can reach, and the moves between them. A
// page can replay every order of steps from it without servers.
type Graph struct {
	Nodes []Node `json:"nodes"` // the first one is the start
}

// Node is a state of both clients. Orders of steps lead to the same Node if each client has done the
// same in them, the same stock is in the database, and the lock's queue has the same order.
type Node struct {
	States [2]State `json:"states"`
	Row    int      `json:"row"`
	Moves  [2]*Move `json:"moves"` // of A and B; nil if the client waits or has its answer
	End    *End     `json:"end,omitempty"`
}

// Move leads to another Node. Log has what was observed on the way, also of the other client, with the commands of the
// round that recorded the move.
type Move struct {
	To  int     `json:"to"`
	Log []Entry `json:"log"`
}

// End is the verdict on a round.
type End struct {
	Lost  int      `json:"lost"`
	Wrong bool     `json:"wrong"` // the stock does not fit the sales
	Text  api.Text `json:"words"`
}

const (
	// maxMoves limits the moves of a recorded round.
	maxMoves = 100
	// maxTries limits the rounds that look for the same move. A lock that depends on time may go
	// another way in the next round.
	maxTries = 4
)

// Record plays rounds until every move of every reachable state is recorded. It calls played after
// each round. No other round may be open.
func (l *Lab) Record(ctx context.Context, played func()) (Graph, error) {
	l.rankFences = true
	defer func() { l.rankFences = false }()
	// In the first round with a strategy, Redis does not have its scripts yet, so replicas send more
	// commands than in later rounds.
	if err := newRecorder().walk(ctx, l, nil); err != nil {
		return Graph{}, err
	}
	r := newRecorder()
	for {
		path, found := r.unrecorded()
		if !found {
			return r.complete(l.Strategy)
		}
		if err := r.walk(ctx, l, path); err != nil {
			return Graph{}, err
		}
		played()
	}
}

type target struct {
	node   int
	client Client
}

type recorder struct {
	Graph
	nodes map[string]int // the index of each node, by its key
	tries map[target]int // number of rounds that looked for a move
}

func newRecorder() *recorder { return &recorder{nodes: map[string]int{}, tries: map[target]int{}} }

// unrecorded returns the shortest path to a move that is not recorded yet, with this move.
func (r *recorder) unrecorded() (path []Client, found bool) {
	if len(r.Nodes) == 0 {
		return nil, true
	}
	for at, path := range r.reached(0) {
		for _, client := range []Client{A, B} {
			if r.Nodes[at].movable(client) && r.tries[target{at, client}] < maxTries && len(path)+1 < maxMoves {
				r.tries[target{at, client}]++
				return append(slices.Clone(path), client), true
			}
		}
	}
	return nil, false
}

// movable reports whether a move of the client is missing.
func (n Node) movable(client Client) bool {
	return n.Moves[client] == nil && (n.States[client] == Idle || n.States[client] == Stopped)
}

// complete returns the states that moves reach from the start, in the order of their distance. It
// returns an error if one of them has a move that no round could repeat.
func (r *recorder) complete(strategy string) (Graph, error) {
	g, places := Graph{}, map[int]int{}
	for at := range r.reached(0) {
		places[at] = len(places)
	}
	for at := range r.reached(0) {
		n := r.Nodes[at]
		for client, move := range n.Moves {
			if n.movable(Client(client)) {
				return Graph{}, fmt.Errorf("record %s: no round of %d reached a move of %v again; try it on a machine with less load", strategy, maxTries, Client(client))
			}
			if move != nil {
				n.Moves[client] = &Move{places[move.To], move.Log}
			}
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g, nil
}

// walk plays a round along the path, and then to its end, by moves that are not recorded if possible.
func (r *recorder) walk(ctx context.Context, l *Lab, path []Client) (err error) {
	round, err := l.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, round.Close()) }()
	at := r.node(round)
	for n := 0; !round.Over(); n++ {
		client := r.choose(round, at, path, n)
		before := len(round.Log)
		if err := goOn(ctx, round, client); err != nil {
			return err
		}
		to := r.node(round)
		if r.Nodes[at].Moves[client] == nil {
			r.Nodes[at].Moves[client] = &Move{To: to, Log: recorded(settled(round.Log[before:], client), round.Product)}
		}
		at = to
	}
	return nil
}

// goOn lets a client continue. If both clients wait then, for example for the end of a deadlock, it
// waits until one of them can be moved.
func goOn(ctx context.Context, round *Round, client Client) error {
	err := round.Go(ctx, client)
	for err == nil && !round.Over() && !round.free(A) && !round.free(B) {
		err = round.Go(ctx, round.next())
	}
	return err
}

// next returns a client that is free to continue. If neither is, it returns one that waits.
func (r *Round) next() Client {
	if !r.free(A) && (r.free(B) || r.State(A) == Ended) {
		return B
	}
	return A
}

func (r *recorder) choose(round *Round, at int, path []Client, n int) Client {
	if n < len(path) && round.free(path[n]) {
		return path[n]
	}
	for _, client := range []Client{A, B} {
		if round.free(client) && r.Nodes[at].movable(client) {
			return client
		}
	}
	return round.next()
}

// settled returns the entries of a move without what only a slow machine shows. If a release lets the
// other client continue, the mover comes first, because either of the two may be observed first. A
// wait is left out if the same client then continued.
func settled(log []Entry, mover Client) []Entry {
	var of [2][]Entry
	for _, e := range log {
		if n := len(of[e.Client]); n > 0 && of[e.Client][n-1].State() == Waiting {
			e.Commands = slices.Concat(of[e.Client][n-1].Commands, e.Commands)
			of[e.Client] = of[e.Client][:n-1]
		}
		of[e.Client] = append(of[e.Client], e)
	}
	return append(of[mover], of[mover.other()]...)
}

// ids matches the ids of requests and of etcd's leases, which are different in each round.
var ids = regexp.MustCompile(`(replica-\d)-[0-9a-f]{8}-\d+|\b[0-9a-f]{13,16}\b`)

// recorded returns the entries with the product 1 in their commands, and without the ids of the round.
func recorded(log []Entry, product int64) []Entry {
	own := regexp.MustCompile(`\b` + strconv.FormatInt(product, 10) + `\b`)
	for i, e := range log {
		log[i].Commands = nil
		for _, command := range e.Commands {
			log[i].Commands = append(log[i].Commands, own.ReplaceAllLiteralString(ids.ReplaceAllString(command, "$1…"), "1"))
		}
	}
	return log
}

// node returns the index of the round's state.
func (r *recorder) node(round *Round) int {
	var did [2][]string
	var queue []Client // without the clients that have left it
	for _, e := range round.Log {
		if e.State() != Waiting { // it makes no difference whether a client had to wait earlier
			did[e.Client] = append(did[e.Client], e.String())
		}
		switch e.Step {
		case api.Queued:
			queue = append(queue, e.Client)
		case api.Granted:
			queue = slices.DeleteFunc(queue, func(c Client) bool { return c == e.Client })
		}
	}
	n := round.Node()
	key := fmt.Sprintf("%v %d %q %v", n.States, n.Row, did, queue)
	at, known := r.nodes[key]
	if !known {
		at = len(r.Nodes)
		r.nodes[key], r.Nodes = at, append(r.Nodes, n)
	}
	return at
}
