package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"oversell/lab/check"
)

//go:embed page.html.tmpl
var pageFiles embed.FS

// page is what the template shows.
type page struct {
	Started    string
	Curves     []bend // of a sweep, which has nothing else
	Results    []Result
	Open       bool   // there are open loops among them
	Tables     []grid // the result table, in two halves that fit a page
	Throughput chart
	Latency    chart
	Lost       chart
	Timelines  []timeline
	Times      grid
	Failures   grid
	Facts      []fact
}

// chart is a picture and the same as figures.
type chart struct {
	Height int // in pixels, of all bars or of one group
	Bars   []bar
	Groups []group
	Table  grid
}

// grid is a table whose first column is its rows' heading.
type grid struct {
	Caption string
	Head    []cell
	Rows    [][]cell
}

type cell struct {
	Text  string
	Alarm bool
	Words bool // text that may wrap
}

// HTML writes one self-contained page: no script, no other file, nothing from a network.
// Everything in it that came from outside is escaped.
func HTML(w io.Writer, results []Result) error {
	return write(w, page{
		Results: results, Open: anyOpen(results), Tables: halves(results),
		Throughput: throughputChart(results), Latency: latencyChart(results), Lost: lostChart(results),
		Timelines: timelines(results), Times: timesGrid(results), Failures: failuresGrid(results), Facts: facts(results),
	})
}

// CurveHTML is HTML for sweeps.
func CurveHTML(w io.Writer, curves []Curve) error {
	p := page{Curves: bends(curves)}
	for _, c := range curves {
		for _, point := range c.Points {
			p.Results = append(p.Results, point.Result)
		}
	}
	p.Facts = sweepFacts(p.Results)
	return write(w, p)
}

func write(w io.Writer, p page) error {
	t, err := template.New("page.html.tmpl").ParseFS(pageFiles, "page.html.tmpl")
	if err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	if len(p.Results) > 0 {
		p.Started = p.Results[0].StartedAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	return nil
}

// tabulate fills a grid from columns of the result table.
func tabulate(caption string, from []column, results []Result) grid {
	g := grid{Caption: caption}
	for _, c := range from {
		g.Head = append(g.Head, cell{Text: c.head})
	}
	for _, r := range results {
		row := make([]cell, len(from))
		for i, c := range from {
			row[i] = cell{Text: c.cell(r), Alarm: c.alarm != nil && c.alarm(r)}
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// halves are the terminal's table in two: JMeter's columns, and the shop's.
func halves(results []Result) []grid {
	all := columns(results)
	at := slices.IndexFunc(all, func(c column) bool { return c.stock })
	return []grid{
		tabulate("What JMeter reports, times in ms", all[:at], results),
		tabulate("What JMeter cannot know", append([]column{all[0]}, all[at:]...), results),
	}
}

// pick takes columns by their heads, after the label.
func pick(results []Result, heads ...string) []column {
	all := columns(results)
	picked := all[:1:1]
	for _, c := range all {
		if slices.Contains(heads, c.head) {
			picked = append(picked, c)
		}
	}
	return picked
}

func heads(words ...string) []cell {
	row := make([]cell, len(words))
	for i, w := range words {
		row[i].Text = w
	}
	return row
}

// timesGrid tells the lock's queue from the work and from the database's own queue.
func timesGrid(results []Result) grid {
	g := grid{
		Caption: "Where the time went, ms: mean and 99%",
		Head:    heads("Label", "In the lock's queue", "queue 99%", "Inside the lock", "inside 99%", "For a connection", "connection 99%"),
	}
	for _, r := range results {
		row := []cell{{Text: label(r)}}
		for _, s := range []Spread{r.Waited, r.Held, r.Pooled} {
			row = append(row, cell{Text: fmt.Sprintf("%.2f", s.Mean)}, cell{Text: fmt.Sprintf("%.2f", s.P99)})
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// failuresGrid has no rows when nothing failed.
func failuresGrid(results []Result) grid {
	g := grid{Caption: "What the first of each kind said", Head: heads("Label", "Requests", "Reason", "Said")}
	g.Head[2].Words, g.Head[3].Words = true, true
	for _, r := range results {
		for _, f := range r.Failures {
			reason := f.Reason
			if f.Backend != "" {
				reason += " (" + f.Backend + ")"
			}
			g.Rows = append(g.Rows, []cell{
				{Text: label(r)},
				{Text: strconv.Itoa(f.Count)},
				{Text: reason, Words: true},
				{Text: shorten(f.Detail), Words: true},
			})
		}
	}
	return g
}

// Class marks a sentence for the eye.
func (r Result) Class() string {
	switch r.Verdict {
	case check.Broken:
		return "broken"
	case check.Holds:
		return "holds"
	default:
		return "undecided"
	}
}

// Mark is the verdict as a sign and a word, for who sees no colours.
func (r Result) Mark() string {
	switch r.Verdict {
	case check.Broken:
		return "✗ broken"
	case check.Holds:
		return "✓ holds"
	default:
		return "? undecided"
	}
}
