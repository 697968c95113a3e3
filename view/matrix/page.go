package matrix

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/view/frame"
)

//go:embed page.html.tmpl
var pageFiles embed.FS

// About has the conditions that the verdicts depend on. The page shows them at its foot.
type About struct {
	Date, Machine, Versions, Command string
	// Contract is the result of the contract of a lock on trial. It is empty for our strategies.
	Contract string
	// Load is the result of its load. It may be empty.
	Load string
}

// Now returns the conditions of results of this machine, on servers with these versions.
func Now(ctx context.Context, versions map[string]string, command string) About {
	var servers []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		servers = append(servers, name+" "+versions[name])
	}
	machine := measure.ThisMachine(ctx)
	return About{
		Date: time.Now().Format(time.DateOnly), Machine: machine.String(),
		Versions: strings.Join(servers, ", "), Command: command,
	}
}

type page struct {
	Summary        string
	Contradictions []string
	Hazards        []chapter
	Rows           []pageRow
	Legend         []meaning
	About          []meaning
}

type chapter struct {
	ID, Hazard, Title, Shows string
	Sections                 []section
}

type pageRow struct {
	Name  string
	Links []link
}

// link leads from the matrix to a run that shows the verdict. If there is no run, Text is empty.
type link struct {
	ID, Text, Sign, Class, Says string
}

type section struct {
	Run
	Title, Claim, Command, Next string
}

type meaning struct{ Term, Means string }

// WritePage writes a self-contained page, without scripts or other files. Each verdict leads to the
// timeline of its first run. The page also shows every run that contradicts its card.
func WritePage(w io.Writer, m Matrix, results []experiment.Result, about About) error {
	p := page{
		Summary: m.summary(), Contradictions: m.Contradictions(),
		About: []meaning{{"date", about.Date}, {"machine", about.Machine}, {"versions", about.Versions}, {"command", about.Command}, {"contract", about.Contract}, {"load", about.Load}},
	}
	for _, v := range allVerdicts() {
		p.Legend = append(p.Legend, meaning{v.verdict.Sign() + " " + string(v.verdict), v.meaning})
	}
	for _, r := range m.Rows {
		row := pageRow{Name: r.name()}
		for _, hazard := range m.Hazards {
			row.Links = append(row.Links, r.link(hazard, results))
		}
		p.Rows = append(p.Rows, row)
	}
	for _, hazard := range m.Hazards {
		c, err := m.chapter(hazard, results)
		if err != nil {
			return err
		}
		p.Hazards = append(p.Hazards, c)
	}
	return frame.Write(w, template.Must(frame.Parse(pageFiles, "page.html.tmpl").ParseFS(RunTemplates, "run.html.tmpl")), p)
}

func (m Matrix) summary() string {
	counts := map[string]int{}
	m.each(func(_ Row, _ string, s Summary) { counts[s.agreement()]++ })
	return fmt.Sprintf("%d verdicts agree with the cards, %d contradict them, and %d do neither.",
		counts["agrees"], counts["contradicts"], counts[""])
}

func (m Matrix) chapter(hazard string, results []experiment.Result) (chapter, error) {
	c := chapter{ID: anchor(hazard), Hazard: hazard}
	e, _ := experiment.Of(hazard)
	c.Title, c.Shows = e.Title.EN, e.Shows.EN
	for _, r := range m.Rows {
		for _, result := range r.shown(hazard, results) {
			s, err := sectionOf(result)
			if err != nil {
				return c, err
			}
			c.Sections = append(c.Sections, s)
		}
	}
	return c, nil
}

// runs returns the results of one hazard on the strategy. typical is the index of the first result
// with the summary's verdict, 0 if no result has it, and -1 without results.
func (r Row) runs(hazard string, results []experiment.Result) (runs []experiment.Result, typical int) {
	for _, result := range results {
		if result.Hazard == hazard && result.Strategy == r.Strategy && result.Fenced == r.Fenced {
			runs = append(runs, result)
		}
	}
	same := func(c experiment.Result) bool { return c.Verdict == r.Summaries[hazard].Verdict }
	return runs, max(min(0, len(runs)-1), slices.IndexFunc(runs, same))
}

// Typical returns one run of each summary that has a claim or did harm: the first with its verdict.
func (m Matrix) Typical(results []experiment.Result) (typical []experiment.Result) {
	m.each(func(r Row, hazard string, s Summary) {
		runs, i := r.runs(hazard, results)
		if i >= 0 && (s.Claim != experiment.Silent || s.Failed > 0) {
			typical = append(typical, runs[i])
		}
	})
	return typical
}

func (r Row) shown(hazard string, results []experiment.Result) (shown []experiment.Result) {
	runs, typical := r.runs(hazard, results)
	for i, result := range runs {
		if i == typical || !result.Agrees() {
			shown = append(shown, result)
		}
	}
	return shown
}

func (r Row) link(hazard string, results []experiment.Result) link {
	runs, i := r.runs(hazard, results)
	if i < 0 {
		return link{}
	}
	s := r.Summaries[hazard]
	l := link{ID: anchorOf(runs[i]), Text: s.Verdict.Sign() + " " + string(s.Verdict), Class: s.Verdict.Class()}
	l.Says = fmt.Sprintf("%s, %s: %s", r.name(), hazard, s.Verdict)
	switch s.agreement() {
	case "agrees":
		l.Sign = "="
		l.Says += ", as the card claims"
	case "contradicts":
		l.Sign = "≠"
		l.Class += " contradicts"
		l.Says += ", but the card claims otherwise"
	}
	if s.Runs > 1 {
		l.Says += fmt.Sprintf(", %d of %d runs failed", s.Failed, s.Runs)
	}
	return l
}

func anchorOf(r experiment.Result) string {
	name := r.Strategy
	if r.Fenced {
		name += "-fenced"
	}
	return anchor(r.Hazard + "." + name + "." + strconv.FormatInt(r.Seed, 10))
}

func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

func sectionOf(r experiment.Result) (s section, err error) {
	s = section{
		Title:   fmt.Sprintf("%s, %s, seed %d", r.Name(), r.Hazard, r.Seed),
		Claim:   map[experiment.Claim]string{experiment.Protects: "protects", experiment.Breaks: "breaks", experiment.Silent: "nothing"}[r.Claim],
		Command: r.Repeat(),
	}
	if r.NextGrantMS > 0 {
		s.Next = fmt.Sprintf("%.3f s after the fault", r.NextGrantMS/1000)
	}
	s.Run, err = RunOf(r, "en", anchorOf(r))
	return s, err
}
