package dash

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"oversell/api"
	"oversell/docs"
	"oversell/lab/stepper"
)

// scene is what the page shows about the open round, or about the last round.
type scene struct {
	Card     card
	Code     []codeFile
	Open     bool
	Solving  bool             // the program takes the steps of both clients
	Rounds   int              // number of rounds in which the steps of a new strategy were recorded
	Moves    []stepper.Client // the presses so far
	Counted  int              // the moves that count, see stepper.Moves
	Shortest shortest
	Log      []stepper.Entry
	States   [2]stepper.State
	Row      int
	Sentence api.Text // the verdict
	Over     bool     // both clients have received their answers
	Wrong    bool     // the round broke an invariant
	Lost     bool     // the round lost an update
	Guess    int      // the predicted stock; 0 means no prediction
	Shown    bool     // the page shows the row and the answers
	Said     api.Text // why the round ended, or what the solution is
	Alarm    bool     // Said is an error
}

func (now *scene) update(r *stepper.Round) {
	now.Log, now.Row, now.Over, now.Sentence = slices.Clone(r.Log), r.Row, r.Over(), r.Sentence()
	now.Wrong = now.Over && r.Stock().Verdict == api.Broken
	now.Lost = now.Over && r.Stock().Lost() > 0
	now.States = [2]stepper.State{r.State(stepper.A), r.State(stepper.B)}
}

// shortest is the smallest number of moves to a lost update, from docs/recorded.
type shortest struct {
	Recorded bool // the recording has the strategy
	graph    stepper.Graph
	Moves    int // 0 if no order in the recording loses an update
}

func shortestOf(strategy string) (s shortest) {
	graphs, err := stepper.Recordings(docs.Steps)
	if err != nil {
		return s
	}
	g, ok := graphs[strategy]
	s.Recorded, s.graph = ok, g
	s.Moves, _ = g.Shortest()
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

type column struct {
	Who     string
	Replica int
	Lines   []stepLine
	State   string // idle, stopped, waiting or ended
	Mark    mark
	Next    string // the code of the marked line
	Code    []codeFile
	Unseen  bool // no shown code reports the client's step, so the mark stays at an earlier step
}

type stepLine struct {
	N        int // the number of the step in the round
	Who      string
	Step     string
	Text     api.Text
	Row      int
	Commands []string // what the client has sent since its previous line
}

// mark is the line of code that a client runs next. If there is none, ID is empty.
type mark struct {
	ID   string `json:"id"`
	Sign string `json:"sign"`
}

func (now scene) column(who stepper.Client) column {
	c := column{
		Who: who.String(), Replica: int(who) + 1, Code: now.Code,
		State: [...]string{stepper.Idle: "idle", stepper.Stopped: "stopped", stepper.Waiting: "waiting", stepper.Ended: "ended"}[now.States[who]],
	}
	for _, l := range now.Lines() {
		if l.Who != c.Who {
			continue
		}
		c.Lines = append(c.Lines, l)
		if l.Step == "" {
			continue
		}
		if file, line, ok := lineOf(now.Code, l.Step); ok {
			c.Mark, c.Unseen = mark{c.ID(file, line-1), "▶"}, false
			c.Next = strings.TrimSpace(now.Code[file].Lines[line-1])
		} else {
			c.Mark.Sign, c.Unseen = "↳", true
		}
	}
	switch c.State {
	case "waiting":
		c.Mark.Sign = "…"
	case "ended":
		c.Mark, c.Next, c.Unseen = mark{}, "", false
	}
	return c
}

// Lines returns the steps of both clients. Until Shown is set, it hides the answers of the service.
func (now scene) Lines() (lines []stepLine) {
	for i, l := range now.Log {
		text := l.Text
		if l.State() == stepper.Ended && !now.Shown {
			text = bilingual("has its answer", "得到了应答")
		}
		lines = append(lines, stepLine{i + 1, l.Client.String(), l.Step, text, l.Row, l.Commands})
	}
	return lines
}

// CanStep reports whether the client can take a step now.
func (now scene) CanStep(who int) bool {
	state := now.States[who]
	return now.Open && !now.Solving && (state == stepper.Idle || state == stepper.Stopped)
}

// ID returns the id of the HTML element that shows a line of a file. file and line count from 0.
func (c column) ID(file, line int) string { return fmt.Sprintf("%s-%d-%d", c.Who, file, line+1) }

// lineOf returns the line that runs after the call of locks.Trace with the step's constant, in which
// a client is paused. Lines count from 1.
func lineOf(files []codeFile, step string) (file, line int, ok bool) {
	constant := strings.ToUpper(step[:1]) + step[1:]
	own := regexp.MustCompile(`\b(\w+)\b(?:\s+api\.Step)?\s*=\s*(?:api\.Step\()?"` + regexp.QuoteMeta(step) + `"`)
	for _, f := range files {
		if name := own.FindStringSubmatch(strings.Join(f.Lines, "\n")); name != nil {
			constant = name[1]
		}
	}
	trace := regexp.MustCompile(`\bTrace\([\w.]+, (api\.)?` + regexp.QuoteMeta(constant) + `,`)
	for i, f := range files {
		if n := slices.IndexFunc(f.Lines, trace.MatchString); n >= 0 {
			return i, nextLine(strings.Join(f.Lines, "\n"), n+1), true
		}
	}
	return 0, 0, false
}

// nextLine returns the line of the statement that runs after the statement on a line of Go code. It
// returns the same line for the last statement of a function.
func nextLine(code string, line int) int {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", code, parser.SkipObjectResolution)
	if err != nil {
		return line
	}
	lineAt := func(n ast.Node) int { return set.Position(n.Pos()).Line }
	var open, around []ast.Node // around are the nodes from the file down to the statement
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			open = open[:len(open)-1]
			return true
		}
		open = append(open, n)
		if _, ok := n.(*ast.ExprStmt); ok && lineAt(n) == line {
			around = slices.Clone(open)
		}
		return true
	})
	for i := len(around) - 1; i > 0; i-- {
		var list []ast.Stmt
		switch n := around[i-1].(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		case *ast.ForStmt, *ast.RangeStmt: // the loop begins again
			return lineAt(n)
		case *ast.FuncLit, *ast.FuncDecl:
			return line
		}
		at := slices.IndexFunc(list, func(s ast.Stmt) bool { return s == around[i] })
		if at < 0 || at+1 == len(list) {
			continue
		}
		switch list[at].(type) {
		case *ast.CaseClause, *ast.CommClause: // the next one is another case
		default:
			return lineAt(list[at+1])
		}
	}
	return line
}
