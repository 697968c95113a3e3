package matrix

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/view/frame"
)

//go:embed page.html.tmpl
var pageFiles embed.FS

// About has the conditions that the verdicts depend on. The page shows them at its foot.
type About struct {
	Date     string `json:"date"`
	Machine  string `json:"machine"`
	Versions string `json:"versions"` // of the servers
	Command  string `json:"command,omitempty"`
	// Contract is the result of the contract of a lock on trial. It is empty for our strategies.
	Contract string `json:"-"`
	// Load is the result of its load. It may be empty.
	Load string `json:"-"`
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
	frame.Words
	Summary        api.Text
	Contradictions []string
	Hazards        []chapter
	Rows           []pageRow
	Legend         []meaning
	About          []meaning
}

type chapter struct {
	ID string
	experiment.Experiment
	Sections []section
}

type pageRow struct {
	Name  string
	Links []link
}

// link leads from the matrix to a run that shows the verdict. If there is no run, Text is empty.
type link struct {
	ID, Text, Sign, Class, Says string
}

// section is a run, which is open if it contradicts its card.
type section struct {
	Run
	Of   experiment.Result
	Open bool
}

// Next returns the time from the fault to the next grant, in seconds; empty if it is not known.
func (s section) Next() string {
	if s.Of.NextGrantMS == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f s", s.Of.NextGrantMS/1000)
}

type meaning struct{ Term, Means string }

// WritePage writes a self-contained page in a language, without scripts or other files. Each verdict leads to the
// timeline of its first run. The page also shows every run that contradicts its card.
func WritePage(w io.Writer, m Matrix, results []experiment.Result, about About, lang string) error {
	p := page{Words: frame.Words{Lang: lang}, Summary: m.summary(), Contradictions: m.Contradictions(lang)}
	p.About = []meaning{
		{p.T("date", "日期"), about.Date},
		{p.T("machine", "机器"), about.Machine},
		{p.T("versions", "版本"), about.Versions},
		{p.T("command", "命令"), about.Command},
		{p.T("contract", "契约"), about.Contract},
		{p.T("load", "负载"), about.Load},
	}
	for _, v := range allVerdicts() {
		p.Legend = append(p.Legend, meaning{v.verdict.Sign() + " " + v.verdict.In(lang), v.meaning.In(lang)})
	}
	for _, r := range m.Rows {
		row := pageRow{Name: r.name()}
		for _, hazard := range m.Hazards {
			row.Links = append(row.Links, r.link(hazard, results, lang))
		}
		p.Rows = append(p.Rows, row)
	}
	for _, hazard := range m.Hazards {
		p.Hazards = append(p.Hazards, m.chapter(hazard, results, lang))
	}
	return template.Must(frame.Parse(pageFiles, "page.html.tmpl").ParseFS(RunTemplates, "run.html.tmpl")).Execute(w, p)
}

func (m Matrix) summary() api.Text {
	counts := map[string]int{}
	m.each(func(_ Row, _ api.Hazard, s Summary) { counts[s.Agreement()]++ })
	return api.Textf("%d verdicts agree with the cards, %d contradict them, and %d do neither.", "%d 个判定与卡片一致，%d 个与卡片不符，%d 个两者都不是。",
		counts["agrees"], counts["contradicts"], counts[""])
}

func (m Matrix) chapter(hazard api.Hazard, results []experiment.Result, lang string) (c chapter) {
	c.ID = anchor(string(hazard))
	c.Experiment, _ = experiment.Of(hazard)
	c.Hazard = hazard
	for _, r := range m.Rows {
		for _, result := range r.shown(hazard, results) {
			c.Sections = append(c.Sections, section{RunOf(result, lang, anchorOf(result)), result, result.Agreement() == api.Contradicts})
		}
	}
	return c
}

// runs returns the results of one hazard on the strategy. typical is the index of the first result
// with the summary's verdict, 0 if no result has it, and -1 without results.
func (r Row) runs(hazard api.Hazard, results []experiment.Result) (runs []experiment.Result, typical int) {
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
	m.each(func(r Row, hazard api.Hazard, s Summary) {
		runs, i := r.runs(hazard, results)
		if i >= 0 && (s.Claim != api.Silent || s.Failed > 0) {
			typical = append(typical, runs[i])
		}
	})
	return typical
}

func (r Row) shown(hazard api.Hazard, results []experiment.Result) (shown []experiment.Result) {
	runs, typical := r.runs(hazard, results)
	for i, result := range runs {
		if i == typical || result.Agreement() == api.Contradicts {
			shown = append(shown, result)
		}
	}
	return shown
}

func (r Row) link(hazard api.Hazard, results []experiment.Result, lang string) link {
	runs, i := r.runs(hazard, results)
	if i < 0 {
		return link{}
	}
	s := r.Summaries[hazard]
	l := link{ID: anchorOf(runs[i]), Text: s.Verdict.Sign() + " " + s.Verdict.In(lang), Class: s.Verdict.Class() + " " + s.Agreement()}
	l.Sign = map[string]string{"agrees": "=", "contradicts": "≠"}[s.Agreement()]
	l.Says = fmt.Sprintf("%s, %s: %s", r.name(), hazard, s.Verdict.In(lang)) + s.comparison().In(lang)
	if s.Runs > 1 {
		l.Says += api.Textf(", %d of %d runs failed", "，%[2]d 次运行中有 %[1]d 次失败", s.Failed, s.Runs).In(lang)
	}
	return l
}

func anchorOf(r experiment.Result) string {
	name := r.Strategy
	if r.Fenced {
		name += "-fenced"
	}
	return anchor(string(r.Hazard) + "." + name + "." + strconv.FormatInt(r.Seed, 10))
}

var notInAnchors = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

func anchor(name string) string { return notInAnchors.ReplaceAllString(name, "_") }
