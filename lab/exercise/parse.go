package exercise

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"oversell/api"
)

// The servers, as they stand in a prompt.
const mysqlServer, redisServer, zkServer = "mysql", "redis", "zk"

type kind int

const (
	comment   kind = iota
	blank          // an empty line
	statement      // session and server send text
	receives       // session receives the reply of its waiting statement, or an event
	dies           // the connections of session break
	sleep          // nothing happens for text
)

// mode is an expectation other than a plain reply, as it stands in a file.
type mode string

const (
	plain    mode = ""
	waits    mode = "(waits)"
	nothing  mode = "(nothing)"
	repeated mode = "(repeated until)"
)

// step is one line of a file with the expectation below it, or a comment of several lines.
type step struct {
	line    int // in the file
	kind    kind
	session string // a capital letter, or clean
	server  string
	text    string // the statement, with new lines; or the duration of sleep
	comment api.Text
	mode    mode
	want    []string // the lines of the reply; empty means any
}

var (
	commentLine   = regexp.MustCompile(`^(en|zh):(?: (.*))?$`)
	statementLine = regexp.MustCompile(`^([A-Z]|clean) (mysql|redis|zk)> (.+)$`)
	continuedLine = regexp.MustCompile(`^ +-> (.*)$`)
	eventLine     = regexp.MustCompile(`^([A-Z]) (receives|dies)$`)
	sleepLine     = regexp.MustCompile(`^sleep (\S+)$`)
	expectedLine  = regexp.MustCompile(`^  +\S`)
)

func parse(name, text string) (Exercise, error) {
	e := Exercise{Name: name}
	var steps []step
	text = strings.ReplaceAll(text, "\r\n", "\n") // of a file that was edited on Windows
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		steps = addLine(steps, i+1, line)
		if steps == nil {
			return e, fmt.Errorf("exercise %s, line %d: cannot read %q", name, i+1, line)
		}
	}
	e.Title = steps[0].comment
	if e.Title.EN == "" || e.Title.ZH == "" || strings.Contains(e.Title.EN+e.Title.ZH, "\n") {
		return e, fmt.Errorf("exercise %s: the file must begin with a title, en: and zh:, of one line each", name)
	}
	for _, s := range steps[1:] {
		switch {
		case s.kind == comment && (s.comment.EN == "" || s.comment.ZH == ""):
			return e, fmt.Errorf("exercise %s, line %d: a comment needs en: and zh: lines", name, s.line)
		case s.session == "clean":
			e.clean = append(e.clean, s)
		case s.kind == blank && (len(e.steps) == 0 || e.steps[len(e.steps)-1].kind == blank):
			// the empty lines around statements of clean
		default:
			e.steps = append(e.steps, s)
		}
	}
	return e, nil
}

// addLine adds a line of a file to steps. It returns nil if it cannot read the line.
func addLine(steps []step, number int, line string) []step {
	last := &step{kind: blank}
	if len(steps) > 0 {
		last = &steps[len(steps)-1]
	}
	if line == "" {
		return append(steps, step{line: number, kind: blank})
	}
	if m := commentLine.FindStringSubmatch(line); m != nil {
		if last.kind != comment {
			steps = append(steps, step{line: number, kind: comment})
			last = &steps[len(steps)-1]
		}
		language := &last.comment.EN
		if m[1] == "zh" {
			language = &last.comment.ZH
		}
		*language = strings.TrimPrefix(*language+"\n"+m[2], "\n")
		return steps
	}
	if m := statementLine.FindStringSubmatch(line); m != nil {
		return append(steps, step{line: number, kind: statement, session: m[1], server: m[2], text: m[3]})
	}
	if m := continuedLine.FindStringSubmatch(line); m != nil && last.kind == statement {
		last.text += "\n" + m[1]
		return steps
	}
	if m := eventLine.FindStringSubmatch(line); m != nil {
		return append(steps, step{line: number, kind: map[string]kind{"receives": receives, "dies": dies}[m[2]], session: m[1]})
	}
	if m := sleepLine.FindStringSubmatch(line); m != nil {
		if _, err := time.ParseDuration(m[1]); err != nil {
			return nil
		}
		return append(steps, step{line: number, kind: sleep, text: m[1]})
	}
	if expectedLine.MatchString(line) && last.expect(strings.TrimSpace(line)) {
		return steps
	}
	return nil
}

// expect adds an indented line to the expectation of a step. It reports whether the line fits.
func (s *step) expect(line string) bool {
	switch mode(line) {
	case waits, repeated:
		if s.kind != statement || s.mode != plain || len(s.want) > 0 {
			return false
		}
		s.mode = mode(line)
	case nothing:
		if s.kind != receives || len(s.want) > 0 {
			return false
		}
		s.mode = nothing
	default:
		if s.kind != statement && s.kind != receives || s.mode == waits || s.mode == nothing {
			return false
		}
		s.want = append(s.want, line)
	}
	return true
}

// met reports whether a reply is the expected one. Spaces count as one space.
func (s *step) met(reply string) bool {
	if len(s.want) == 0 {
		return true
	}
	pattern := regexp.QuoteMeta(oneSpace(strings.Join(s.want, "\n")))
	return regexp.MustCompile("(?s)^" + strings.ReplaceAll(pattern, `\.\.\.`, ".*") + "$").MatchString(oneSpace(reply))
}

var spaces = regexp.MustCompile(` +`)

func oneSpace(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
	}
	return strings.Join(lines, "\n")
}
