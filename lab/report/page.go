package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
)

//go:embed page.html.tmpl
var pageFiles embed.FS

type page struct {
	Started    string
	Curves     []bend // of a sweep; then the other parts are empty
	Results    []Result
	Cards      []verdictCard
	Advice     Sentence // empty for a sweep
	Open       bool     // some result is of an open loop
	Tables     []grid   // all figures in two parts, to fit on a page
	Throughput chart
	Latency    chart
	Lost       chart
	Timelines  []timeline
	Times      grid
	Failures   grid
	Facts      []fact
}

type chart struct {
	Height int // in pixels, of all bars or of one group
	Bars   []bar
	Groups []group
}

// verdictCard is the verdict on one strategy, with the figures that matter most.
type verdictCard struct {
	Result
	Label, Sign, Rate, P99 string
	Headline               Sentence
	Notes                  []Sentence
}

// grid is a table. The first column has the headings of the rows.
type grid struct {
	Caption string
	Head    []cell
	Rows    [][]cell
}

type cell struct {
	Text  string
	Alarm bool
	Words bool // the text may wrap
}

// HTML writes a self-contained page, without scripts or other files.
func HTML(w io.Writer, results []Result) error {
	cards := make([]verdictCard, 0, len(results))
	for _, r := range results {
		cards = append(cards, verdictCard{r, label(r), sign(r.Verdict), measured(r, r.ThroughputPerS), measured(r, r.P99MS), Headline(r), notes(r)})
	}
	return write(w, page{
		Results: results, Cards: cards, Advice: advice(results), Open: anyOpen(results), Tables: halves(results),
		Throughput: throughputChart(results), Latency: latencyChart(results), Lost: lostChart(results),
		Timelines: timelines(results), Times: timesGrid(results), Failures: failuresGrid(results), Facts: facts(results),
	})
}

// CurveHTML writes the page of a sweep.
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

func halves(results []Result) []grid {
	all := columns(results)
	at := slices.IndexFunc(all, func(c column) bool { return c.stock })
	return []grid{
		tabulate("What JMeter reports, times in ms", all[:at], results),
		tabulate("What JMeter cannot know", append([]column{all[0]}, all[at:]...), results),
	}
}

func heads(words ...string) []cell {
	row := make([]cell, len(words))
	for i, w := range words {
		row[i].Text = w
	}
	return row
}

func timesGrid(results []Result) grid {
	g := grid{
		Caption: "Where the time went, in ms: mean and 99%",
		Head:    heads("Label", "Waiting for the lock", "waiting 99%", "Holding the lock", "holding 99%", "Waiting for a connection", "connection 99%"),
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

func failuresGrid(results []Result) grid {
	g := grid{Caption: "The first error message of each kind", Head: heads("Label", "Requests", "Reason", "Message")}
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

// Class returns the CSS class of the result: broken, holds or inconclusive.
func (r Result) Class() string { return string(r.Verdict) }
