package dash

import (
	"html/template"
	"slices"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/docs"
	"oversell/lab/stepper"
	"oversell/view/ladder"
)

// scene is what the page shows about the open round, or about the last round.
type scene struct {
	Number   int // of the round
	Card     api.Card
	Places   map[api.Step]stepper.Place // in the code, by the step
	Open     bool
	Solving  bool             // the program takes the steps of both clients
	Rounds   int              // number of rounds in which the steps of a new strategy were recorded
	Product  int64            // of the round; a recording has product 1
	Moves    []stepper.Client // the presses so far
	Shortest shortest
	Log      []stepper.Entry
	States   [2]stepper.State
	Row      int
	Sold     int
	Sentence api.Text // the verdict
	Over     bool     // both clients have received their answers
	Wrong    bool     // the round broke an invariant
	Lost     bool     // the round lost an update, or will lose one, whatever steps follow
	Guess    int      // the predicted stock; 0 means no prediction
	Hint     bool     // the page shows how many orders lose an update
	Said     api.Text // why the round ended, or what the solution is
	Alarm    bool     // Said is an error
}

// update shows the state of a round, which may have ended without an answer.
func (now *scene) update(r *stepper.Round, moves []stepper.Client) {
	now.Product = r.Product
	if now.show(moves, r.Log, r.Node()); now.Over {
		now.Sold = r.Stock().Sold
	}
}

// show shows a state of a round or of a recording, with the moves that led to it, and their entries.
func (now *scene) show(moves []stepper.Client, log []stepper.Entry, n stepper.Node) {
	now.Moves, now.Log, now.States, now.Row, now.Over = slices.Clone(moves), slices.Clone(log), n.States, n.Row, n.End != nil
	now.Sold, now.Wrong, now.Lost = 2, false, stepper.Written(log) > 0 && now.Shortest.graph.Decided(moves)
	if now.Over {
		now.Sold, now.Wrong, now.Lost, now.Sentence = n.End.Lost+now.Taken(), n.End.Wrong, n.End.Lost > 0, n.End.Text
	}
}

// Taken returns the number of pieces that left the stock.
func (now scene) Taken() int { return stepper.Pieces - now.Row }

// Last returns the latest entry, or nothing.
func (now scene) Last() []stepper.Entry { return now.Log[max(0, len(now.Log)-1):] }

// Guarded reports whether no order of the steps should lose an update: by the card, or by the recording.
func (now scene) Guarded() bool {
	return now.Card.Safe || now.Shortest.Recorded && now.Shortest.Moves == 0
}

// LostAt returns the number of the move with which the update was lost.
func (now scene) LostAt() int { return stepper.Written(now.Log) }

// Next returns the strategy to try next: one that loses no update after one that loses one.
func (now scene) Next() string {
	tour := []string{"none", "redis", "mutex", "for-update", "mutex-in-tx", "version", "zk-node-zero", "zk"}
	if at := slices.Index(tour, now.Card.ID); at >= 0 {
		return tour[(at+1)%len(tour)]
	}
	if now.Lost {
		return "redis"
	}
	return "mutex"
}

// shortest is the recording of a strategy, with the smallest number of moves to a lost update.
type shortest struct {
	Recorded bool // the recording has the strategy
	graph    stepper.Graph
	Moves    int // 0 if no order in the recording loses an update
}

func shortestOf(strategy string) (s shortest) {
	graphs, _ := stepper.Recordings(docs.Steps) // no error: a test reads them
	s.graph, s.Recorded = graphs[strategy]
	s.Moves, _ = s.graph.Shortest()
	return s
}

// Ahead returns the orders of steps that are left, from the recording, or nil.
func (now scene) Ahead() *stepper.Orders {
	o, found := now.Shortest.graph.Ahead(now.Moves)
	if !found || now.Solving || now.Over {
		return nil
	}
	return &o
}

// Holders returns the clients that hold the lock.
func (now scene) Holders() (holders []string) {
	for _, who := range []stepper.Client{stepper.A, stepper.B} {
		if stepper.HoldsLock(stepper.Of(now.Log, who)) {
			holders = append(holders, who.String())
		}
	}
	return holders
}

// Locks reports whether a sale of the strategy acquires a lock.
func (now scene) Locks() bool { return stepper.Locks(now.Shortest.graph.Program(stepper.A, now.Log)) }

// column is the code of a client, as the board of the game.
type column struct {
	Who, Key, Other string // Key takes the client's next step
	Replica         int
	Lines           []stepper.BoardLine
	State           string // idle, stopped, waiting or ended
	CanStep         bool
	Blocked         bool       // the other client may hold what this one waits for
	Says            []api.Text // what it has read, and what it did last
}

// mark is the line of code that a client runs next.
type mark struct {
	stepper.Place
	Sign string `json:"sign"`
}

func (now scene) marks() []mark {
	marks := []mark{}
	for _, who := range []stepper.Client{stepper.A, stepper.B} {
		for _, e := range slices.Backward(stepper.Of(now.Log, who)) {
			if at, known := now.Places[e.Step]; known && now.States[who] != stepper.Ended {
				marks = append(marks, mark{at, who.String()})
				break
			}
		}
	}
	return marks
}

func (now scene) column(who stepper.Client) column {
	log := stepper.Of(now.Log, who)
	c := column{
		Who: who.String(), Key: strings.ToLower(who.String()), Other: (1 - who).String(), Replica: int(who) + 1,
		State: [...]string{stepper.Idle: "idle", stepper.Stopped: "stopped", stepper.Waiting: "waiting", stepper.Ended: "ended"}[now.States[who]],
		Says:  stepper.Variables(log),
	}
	c.Blocked = stepper.Blocks(stepper.Of(now.Log, 1-who))
	c.CanStep = now.Open && !now.Solving && (c.State == "idle" || c.State == "stopped")
	if now.Card.ID != "" {
		c.Lines = stepper.Board(stepper.ForProduct(now.Shortest.graph.Program(who, log), now.Product), log)
	}
	return c
}

// messages draws the messages of both clients, for the part "ladder" of the page.
func (now scene) messages() hub.Part {
	if len(now.Log) == 0 {
		return hub.Part{ID: "ladder"}
	}
	return hub.Part{ID: "ladder", Text: inBoth(func(lang string) template.HTML {
		return ladder.OfSteps(now.Log, now.Card.Locker, lang).Inline("ladder")
	})}
}
