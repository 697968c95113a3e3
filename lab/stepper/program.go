package stepper

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
)

// Statement is what a client does up to its next step: lines of pseudo-code, and the commands that it
// sends meanwhile.
type Statement struct {
	Step     api.Step // empty for the answer
	Code     []api.Text
	Commands []string
}

// Of returns the entries of a client.
func Of(log []Entry, client Client) []Entry {
	return slices.DeleteFunc(slices.Clone(log), func(e Entry) bool { return e.Client != client })
}

// Log returns the entries of the moves, up to a move that the recording lacks.
func (g Graph) Log(moves []Client) (log []Entry) {
	at := 0
	for i, client := range moves {
		if at >= len(g.Nodes) || g.Nodes[at].Moves[client] == nil {
			break
		}
		move := g.Nodes[at].Moves[client]
		for _, e := range move.Log {
			e.Move = i + 1
			log = append(log, e)
		}
		at = move.To
	}
	return log
}

// Program returns what a client does alone, as recorded. Without a recording, it has the steps of log,
// which are of the same client, and a line that stands for the rest.
func (g Graph) Program(client Client, log []Entry) []Statement {
	if alone := g.Log(slices.Repeat([]Client{client}, maxMoves)); len(alone) > 0 {
		return statements(alone)
	}
	steps := slices.DeleteFunc(slices.Clone(log), func(e Entry) bool { return e.Step == "" })
	return append(statements(steps), Statement{Code: []api.Text{api.Verbatim("  …")}})
}

// ForProduct returns a recorded program with the commands for another product than the recorded one, which is 1.
func ForProduct(program []Statement, product int64) []Statement {
	for i, s := range program {
		for j, c := range s.Commands {
			if product > 0 {
				program[i].Commands[j] = recordedProduct.ReplaceAllString(c, "${1}"+strconv.FormatInt(product, 10))
			}
		}
	}
	return program
}

// Locks reports whether a sale acquires a lock.
func Locks(program []Statement) bool {
	return slices.ContainsFunc(program, func(s Statement) bool { return s.Step == api.Granted })
}

// BoardLine is a Statement that is done, next or later.
type BoardLine struct {
	Statement
	State string
}

// Board returns the program of a client with the commands that it has really sent. A client that tries
// again, or was rolled back, goes back to an earlier line. Without a sale, the last line is not done.
func Board(program []Statement, log []Entry) (lines []BoardLine) {
	begin := slices.IndexFunc(program, func(s Statement) bool { return slices.Contains(s.Commands, "START TRANSACTION") })
	next := 0
	var sent []string
	for _, e := range log {
		for _, command := range e.Commands {
			sent = append(sent, Brief(command))
		}
		at := slices.IndexFunc(program, func(s Statement) bool { return s.Step == e.Step })
		switch {
		case begin >= 0 && rolledBack(e.Step, e.Commands):
			sent, next = nil, begin
		case at < 0 || e.State() == Waiting:
		case e.State() != Ended || writes(e.Step, e.Text):
			program[at].Commands, sent, next = sent, nil, at+1
		}
	}
	for i, s := range program {
		lines = append(lines, BoardLine{s, [...]string{"later", "next", "done"}[1+cmp.Compare(next, i)]})
	}
	return lines
}

// statements returns the statements behind the entries of one client. Values that another order of the
// steps would change have names in it.
func statements(log []Entry) (program []Statement) {
	row, done := Pieces, map[api.Step]bool{}
	for i, e := range log {
		s := Statement{Step: e.Step, Commands: slices.Clone(e.Commands)}
		code := pseudocode(e.Step, done, e.Row < row)
		if i == 0 && e.Step != api.Asked {
			code = slices.Insert(code, 0, api.Verbatim("buy():"))
		}
		for j, c := range s.Commands {
			if c = Brief(c); done[api.Read] {
				c = variable.ReplaceAllString(c, "${1}new")
			}
			s.Commands[j] = version.ReplaceAllString(c, "$1…")
		}
		s.Code, row, done[e.Step] = code, e.Row, true
		program = append(program, s)
	}
	return program
}

var (
	quoted   = regexp.MustCompile("(?:`\\w+`\\.)?`(\\w+)`")
	variable = regexp.MustCompile(`(SET count = |SET \S+ )9\b`)
	// recordedProduct matches the recorded product 1 where a command names it.
	recordedProduct = regexp.MustCompile(`(\bid = |product = |stock\}?:|VALUES \(|, ?\()1\b`)

	version = regexp.MustCompile(`(AND version = )\d+`)
)

// Brief returns a command without the quotes around names, and without the table before a column.
func Brief(command string) string { return quoted.ReplaceAllString(command, "$1") }

// pseudocode returns the lines that a client runs up to a step. done has its earlier steps; sells
// means that the stock has fallen meanwhile.
func pseudocode(step api.Step, done map[api.Step]bool, sells bool) []api.Text {
	code := []string{string(step)}
	switch step {
	case "":
		code = []string{`return "sold"`}
	case api.Asked:
		return []api.Text{api.Verbatim("buy():")}
	case api.Queued:
		code = []string{"queue()"}
	case api.Granted, "after-setnx":
		code = []string{"lock()"}
		if done["after-setnx"] {
			code = []string{"lock.expire()"}
		}
	case api.Read:
		code = []string{"count = read()"}
	case api.Writing:
		if !done[api.Read] {
			return []api.Text{{EN: "  # the server subtracts", ZH: "  # 由服务器做减法"}}
		}
		code = []string{`if count < 1: return "sold out"`, "new = count - 1"}
	case api.Written, "reserved", "taken":
		switch {
		case done[api.Read]:
			code = []string{"write(new)"}
		case sells:
			code = []string{"count = count - 1"}
		default:
			code = []string{"confirm()"}
		}
	case "compared":
		code = []string{"if lock.value == mine:"}
	case "unlocked", api.Released:
		code = []string{"unlock()"}
		if step == api.Released && (done["unlocked"] || !done[api.Granted]) {
			code = []string{"commit()"}
		}
	}
	lines := make([]api.Text, len(code))
	for i, line := range code {
		lines[i] = api.Verbatim("  " + line)
	}
	return lines
}

// HoldsLock reports whether a client has the lock after its entries.
func HoldsLock(log []Entry) (holds bool) {
	for _, e := range log {
		switch step := e.Step; {
		case step == api.Granted || step == "after-setnx":
			holds = true
		case step == api.Released || step == "unlocked" || e.State() == Ended:
			holds = false
		}
	}
	return holds
}

// Blocks reports whether another client may have to wait for the client with these entries: it has begun, and has
// neither released its lock nor received its answer.
func Blocks(log []Entry) bool {
	for _, e := range slices.Backward(log) {
		if e.State() != Waiting {
			return e.State() == Stopped && e.Step != api.Released
		}
	}
	return len(log) > 0
}

// Variables returns the texts of the values that a client has: what it read, and its latest entry.
func Variables(log []Entry) (texts []api.Text) {
	for i, e := range slices.Backward(log) {
		if i == len(log)-1 || e.Step == api.Read {
			texts = slices.Insert(texts, 0, e.Text)
		}
		if e.Step == api.Read || strings.HasPrefix(e.Text.EN, "answer:") {
			break
		}
	}
	return texts
}
