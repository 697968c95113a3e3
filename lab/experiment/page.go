package experiment

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"oversell/lab/timeline"
)

//go:embed page.html.tmpl
var pageFiles embed.FS

// About is what the verdicts depend on, for the foot of the page.
type About struct {
	Date, Machine, Versions, Command string
}

// page is what the template shows.
type page struct {
	Style          template.CSS
	Summary        string
	Contradictions []string
	Hazards        []chapter
	Rows           []line
	Legend         []meaning
	About          []meaning
}

// chapter is one hazard with the runs that are shown of it.
type chapter struct {
	ID, Hazard, Title, Shows string
	Sections                 []section
}

// line is a row of the matrix, with a square for each hazard.
type line struct {
	Name    string
	Squares []link
}

// link is a square of the matrix, which leads to the run that shows its verdict. A
// square without a run has no text.
type link struct {
	ID, Text, Sign, Class, Says string
}

// section is one recorded run.
type section struct {
	ID, Title, Class, Sentence, Why, Claim string
	Mark, Command, Next, Gap               string
	Picture                                template.HTML
	Tables                                 []timeline.Table
	Left                                   string
}

// meaning is a term and what it means.
type meaning struct{ Term, Means string }

// WritePage writes one self-contained page: no script, no other file, nothing from a
// network. Each square of the matrix leads to the timeline of a run: the first one that
// had the square's verdict. Runs that contradict their card are all shown.
func WritePage(w io.Writer, m Matrix, cells []Cell, about About) error {
	p := page{
		Style: timeline.Style(), Summary: m.summary(), Contradictions: m.Contradictions(), Legend: meanings(),
		About: []meaning{{"date", about.Date}, {"machine", about.Machine}, {"versions", about.Versions}, {"command", about.Command}},
	}
	for _, r := range m.Rows {
		l := line{Name: r.name()}
		for _, hazard := range m.Hazards {
			l.Squares = append(l.Squares, r.link(hazard, cells))
		}
		p.Rows = append(p.Rows, l)
	}
	for _, hazard := range m.Hazards {
		c, err := m.chapter(hazard, cells)
		if err != nil {
			return err
		}
		p.Hazards = append(p.Hazards, c)
	}
	t, err := template.ParseFS(pageFiles, "page.html.tmpl")
	if err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	return nil
}

// summary counts the squares.
func (m Matrix) summary() string {
	agree, contradict, silent := 0, 0, 0
	m.each(func(_ Row, _ string, s Square) {
		switch {
		case !s.Agrees:
			contradict++
		case s.Claim == Silent:
			silent++
		default:
			agree++
		}
	})
	return fmt.Sprintf("%d squares are as their cards claim, %d contradict them, about %d the cards are silent.", agree, contradict, silent)
}

// chapter has the runs of one hazard that are shown.
func (m Matrix) chapter(hazard string, cells []Cell) (chapter, error) {
	c := chapter{ID: anchor(hazard), Hazard: hazard}
	if i := slices.IndexFunc(All(), func(e Experiment) bool { return e.Hazard == hazard }); i >= 0 {
		c.Title, c.Shows = All()[i].Title, All()[i].Shows
	}
	for _, r := range m.Rows {
		for _, cell := range r.shown(hazard, cells) {
			s, err := cell.section()
			if err != nil {
				return c, err
			}
			c.Sections = append(c.Sections, s)
		}
	}
	return c, nil
}

// runs are the cells of one square.
func (r Row) runs(hazard string, cells []Cell) (runs []Cell) {
	for _, cell := range cells {
		if cell.Hazard == hazard && cell.Strategy == r.Strategy && cell.Fenced == r.Fenced {
			runs = append(runs, cell)
		}
	}
	return runs
}

// exhibit is the first run with the square's verdict; where no run has it, as none has
// "not shown", the first of all. Without runs it is -1.
func (r Row) exhibit(hazard string, runs []Cell) int {
	same := func(c Cell) bool { return c.Verdict == r.Squares[hazard].Verdict }
	return max(min(0, len(runs)-1), slices.IndexFunc(runs, same))
}

// shown are the runs of a square that get a timeline.
func (r Row) shown(hazard string, cells []Cell) (shown []Cell) {
	runs := r.runs(hazard, cells)
	exhibit := r.exhibit(hazard, runs)
	for i, cell := range runs {
		if i == exhibit || !cell.Agrees() {
			shown = append(shown, cell)
		}
	}
	return shown
}

func (r Row) link(hazard string, cells []Cell) link {
	runs := r.runs(hazard, cells)
	i := r.exhibit(hazard, runs)
	if i < 0 {
		return link{}
	}
	s := r.Squares[hazard]
	l := link{ID: runs[i].anchor(), Text: string(s.Verdict), Class: class(s.Verdict)}
	l.Says = fmt.Sprintf("%s, %s: %s", r.name(), hazard, s.Verdict)
	switch {
	case s.Claim == Silent:
	case s.Agrees:
		l.Sign = "="
		l.Says += ", as its card claims"
	default:
		l.Sign = "!"
		l.Class += " contradicts"
		l.Says += ", against its card"
	}
	if s.Runs > 1 {
		l.Says += fmt.Sprintf(", %d of %d runs broke", s.Broke, s.Runs)
	}
	return l
}

// anchor names the cell's section.
func (c Cell) anchor() string {
	name := c.Strategy
	if c.Fenced {
		name += "-fenced"
	}
	return anchor(c.Hazard + "." + name + "." + strconv.FormatInt(c.Seed, 10))
}

// anchor makes a name fit for an address: an id of the page.
func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

func (c Cell) section() (section, error) {
	name := Subject{Card: Card{ID: c.Strategy}, Fenced: c.Fenced}.Name()
	s := section{
		ID: c.anchor(), Title: fmt.Sprintf("%s, %s, seed %d", name, c.Hazard, c.Seed), Class: class(c.Verdict),
		Mark: sign(c.Verdict) + " " + string(c.Verdict), Sentence: c.sentence(name), Why: c.Why,
		Claim:   map[Claim]string{Protects: "it stands", Breaks: "it falls", Silent: "nothing"}[c.Claim],
		Command: c.Command() + " --seed " + strconv.FormatInt(c.Seed, 10), Gap: c.gap(),
	}
	if c.NextGrantMS > 0 {
		s.Next = fmt.Sprintf("%.3f s after the fault", c.NextGrantMS/1000)
	}
	t := timeline.Of(c.Recording)
	if t.Empty() {
		return s, nil
	}
	picture, err := t.Inline(s.ID + ".picture")
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.Title, err)
	}
	s.Picture, s.Left = picture, t.Left()
	for _, table := range []timeline.Table{t.Requests(), t.Moments()} {
		if len(table.Rows) > 0 {
			s.Tables = append(s.Tables, table)
		}
	}
	return s, nil
}

// sentence is the verdict in words, and what the card had said.
func (c Cell) sentence(name string) string {
	words := map[Verdict]string{
		Safe:     name + " stood: every invariant held.",
		Violated: name + " broke: " + orAnInvariant(c.Invariant) + " does not hold.",
		Stalled:  name + " stalled: nobody got the lock within the bound.",
		Aborted:  name + " aborted: the lock ended under the work, and only the work was lost.",
		Wasteful: name + " was correct, at a cost that grows with the crowd.",
		NotShown: "The flaw of " + name + " did not show.",
		Unknown:  "This run says nothing of " + name + ".",
	}[c.Verdict]
	switch {
	case c.Claim == Silent:
		return words + " Its card is silent about this hazard."
	case c.Verdict == Unknown:
		return words
	case c.Agrees():
		return words + " So its card claims."
	default:
		return words + " Its card claims otherwise."
	}
}

func orAnInvariant(name string) string {
	if name == "" {
		return "an invariant"
	}
	return name
}

// gap compares what was sold with what left the row.
func (c Cell) gap() string {
	switch lost := c.Sold - c.Taken; {
	case c.Sold == 0 && c.Taken == 0:
		return ""
	case lost > 0:
		return fmt.Sprintf("%d sold, %d left the row: %d sold without a trace in the stock.", c.Sold, c.Taken, lost)
	case lost < 0:
		return fmt.Sprintf("%d sold, %d left the row: %d taken, and no customer was told so.", c.Sold, c.Taken, -lost)
	default:
		return fmt.Sprintf("%d sold, %d left the row: nothing was lost.", c.Sold, c.Taken)
	}
}

// class marks a verdict for the eye.
func class(v Verdict) string {
	switch {
	case v == Violated || v == Stalled:
		return "broke"
	case v.Broke():
		return "cost"
	case v == Safe:
		return "safe"
	default:
		return "doubt"
	}
}

// sign is for who sees no colours.
func sign(v Verdict) string {
	return map[string]string{"broke": "✗", "cost": "▲", "safe": "✓", "doubt": "?"}[class(v)]
}

func meanings() (all []meaning) {
	for _, m := range []struct {
		verdict Verdict
		means   string
	}{
		{Safe, "every invariant held"},
		{Violated, "an invariant broke: mostly, more was sold than left the row"},
		{Stalled, "nobody got the lock within the bound"},
		{Aborted, "the lock ended under the work: nothing was lost but the work"},
		{Wasteful, "correct, at a cost that grows with the crowd"},
		{NotShown, "the card claims a flaw, and no run showed it"},
		{Unknown, "too many unknown outcomes, or the experiment itself failed"},
	} {
		all = append(all, meaning{sign(m.verdict) + " " + string(m.verdict), m.means})
	}
	return all
}
