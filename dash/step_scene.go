package dash

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"oversell/lab/check"
	"oversell/lab/stepper"
)

// scene is what the page shows: the round that is open, or the last one.
type scene struct {
	Card     card
	Code     []codeFile
	Open     bool
	Solving  bool // the program steps, nobody else
	Tried    int  // schedules so far
	Log      []stepper.Entry
	States   [2]stepper.State
	Row      int
	Sentence Text // how it ended
	Over     bool // both have their answers
	Wrong    bool // and what was sold is not what has left the row
	Guess    int  // how many will be left; 0: nobody has said
	Shown    bool // the row and the answers may be seen
	Said     Text // why it is not open any more, or what was found
	Alarm    bool // and that is bad
}

// codeFile is a file of the strategy in lines.
type codeFile struct {
	Name  string
	Lines []string
}

// see takes over what a round has come to.
func (now *scene) see(r *stepper.Round) {
	now.Log, now.Row, now.Over, now.Sentence = slices.Clone(r.Log), r.Row, r.Over(), Text(r.Sentence())
	now.Wrong = now.Over && r.Stock().Verdict == check.Broken
	now.States = [2]stepper.State{r.State(stepper.A), r.State(stepper.B)}
}

// column is a client as the page shows it.
type column struct {
	Who     string
	Replica int
	Lines   []stepLine
	State   string // idle, stopped, waiting or ended
	Mark    mark
	Code    []codeFile
	Unseen  bool // its step is told in a file that is not shown: the mark is at the step before
}

// stepLine is something seen of a client, as the page tells it.
type stepLine struct {
	N    int // in the round
	Who  string
	Step string
	Text Text
	Row  int
}

// mark is the line of the code at which a client is; ID is empty where it is at none.
type mark struct {
	ID   string `json:"id"`
	Sign string `json:"sign"`
}

func (now scene) column(who stepper.Client) column {
	c := column{
		Who: who.String(), Replica: int(who) + 1, Code: now.Code,
		State: [...]string{stepper.Idle: "idle", stepper.Stopped: "stopped", stepper.Waiting: "waiting", stepper.Ended: "ended"}[now.States[who]],
	}
	for _, l := range now.Told() {
		if l.Who != c.Who {
			continue
		}
		c.Lines = append(c.Lines, l)
		if l.Step == "" {
			continue
		}
		if file, line, ok := lineOf(now.Code, l.Step); ok {
			c.Mark, c.Unseen = mark{fmt.Sprintf("%s-%d-%d", who, file, line), "▶"}, false
		} else {
			c.Mark.Sign, c.Unseen = "↳", true
		}
	}
	switch c.State {
	case "waiting":
		c.Mark.Sign = "…"
	case "ended":
		c.Mark, c.Unseen = mark{}, false
	}
	return c
}

// Told are the lines of both clients; nobody sees an answer before it is asked for.
func (now scene) Told() []stepLine {
	var told []stepLine
	for i, l := range now.Log {
		text := Text(l.Words)
		if l.State() == stepper.Ended && !now.Shown {
			text = Text{"has its answer", "得到了答复"}
		}
		told = append(told, stepLine{i + 1, l.Client.String(), l.Step, text, l.Row})
	}
	return told
}

// Can says whether somebody may let the client go on.
func (now scene) Can(who string) bool {
	state := now.States[stepper.A]
	if who == "B" {
		state = now.States[stepper.B]
	}
	return now.Open && !now.Solving && (state == stepper.Idle || state == stepper.Stopped)
}

// ID is the element of a line of the file.
func (c column) ID(file, line int) string { return fmt.Sprintf("%s-%d-%d", c.Who, file, line+1) }

func inLines(c card) []codeFile {
	var files []codeFile
	for _, f := range c.Code {
		files = append(files, codeFile{f.Name, strings.Split(strings.TrimRight(f.Text, "\n"), "\n")})
	}
	return files
}

// lineOf finds the line that tells of a step: locks.Trace with the step's constant, which
// is one of package api, such as api.Read, or the strategy's own.
func lineOf(files []codeFile, step string) (file, line int, ok bool) {
	constant := strings.ToUpper(step[:1]) + step[1:]
	own := regexp.MustCompile(`\b(\w+)\b(?:\s+api\.Step)?\s*=\s*(?:api\.Step\()?"` + regexp.QuoteMeta(step) + `"`)
	for _, f := range files {
		if name := own.FindStringSubmatch(strings.Join(f.Lines, "\n")); name != nil {
			constant = name[1]
		}
	}
	told := regexp.MustCompile(`\bTrace\([\w.]+, (api\.)?` + regexp.QuoteMeta(constant) + `,`)
	for i, f := range files {
		for n, text := range f.Lines {
			if told.MatchString(text) {
				return i, n + 1, true
			}
		}
	}
	return 0, 0, false
}
