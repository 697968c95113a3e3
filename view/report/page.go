package report

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/frame"
	"oversell/view/terminal"
)

//go:embed page.html.tmpl
var pageFiles embed.FS

type page struct {
	Started    string
	Curves     []bend // of a sweep; then the other parts are empty
	Results    []measure.Result
	Cards      []verdictCard
	Advice     api.Text         // empty for a sweep
	Open       bool             // some result is of an open loop
	Tables     []terminal.Table // all figures in two parts, to fit on a page
	Throughput []group
	Latency    []group
	Lost       []group
	Timelines  []timeline
	Times      terminal.Table
	Failures   terminal.Table
	Facts      []fact
}

// verdictCard is the verdict on one strategy, with the figures that matter most.
type verdictCard struct {
	measure.Result
	Label, Sign, Rate, P99 string
	Headline               api.Text
	Notes                  []api.Text
}

// HTML writes a self-contained page, without scripts or other files.
func HTML(w io.Writer, results []measure.Result) error {
	cards := make([]verdictCard, 0, len(results))
	for _, r := range results {
		cards = append(cards, verdictCard{r, label(r), r.Verdict.Sign(), measured(r, r.ThroughputPerS), measured(r, r.P99MS), Headline(r), measure.Notes(r)})
	}
	return write(w, page{
		Results: results, Cards: cards, Advice: Advice(results), Open: anyOpen(results), Tables: halves(results),
		Throughput: barChart(results, throughputBar), Latency: barChart(results, latencyBars), Lost: barChart(results, lostBar),
		Timelines: timelines(results), Times: timesTable(results), Failures: failuresTable(results), Facts: facts(results),
	})
}

// CurveHTML writes the page of a sweep.
func CurveHTML(w io.Writer, curves []measure.Curve) error {
	p := page{Curves: bends(curves)}
	for _, c := range curves {
		for _, point := range c.Points {
			p.Results = append(p.Results, point.Result)
		}
	}
	p.Facts = facts(p.Results)
	return write(w, p)
}

func write(w io.Writer, p page) error {
	if len(p.Results) > 0 {
		p.Started = p.Results[0].StartedAt.UTC().Format("2006-01-02 15:04 UTC")
	}
	return frame.Parse(pageFiles, "page.html.tmpl").Execute(w, p)
}

func halves(results []measure.Result) []terminal.Table {
	all := jmeterColumns(results)
	at := slices.IndexFunc(all, func(c Column) bool { return c.Stock })
	return []terminal.Table{
		jmeterTable("What JMeter reports, times in ms", all[:at], results),
		jmeterTable("What JMeter cannot know", append([]Column{all[0]}, all[at:]...), results),
	}
}

func timesTable(results []measure.Result) terminal.Table {
	t := terminal.Texts("Where the time went, in ms: mean and 99%",
		"Label", "Waiting for the lock", "waiting 99%", "Holding the lock", "holding 99%", "Waiting for a connection", "connection 99%")
	for _, r := range results {
		row := []string{label(r)}
		for _, s := range []measure.Spread{r.Waited, r.Held, r.Pooled} {
			row = append(row, fmt.Sprintf("%.2f", s.Mean), fmt.Sprintf("%.2f", s.P99))
		}
		t.Add(row...)
	}
	return t
}

func failuresTable(results []measure.Result) terminal.Table {
	t := terminal.Texts("The first error message of each kind", "Label", "Requests", "Reason", "Message")
	t.Columns[2].Words, t.Columns[3].Words = true, true
	for _, r := range results {
		for _, f := range r.Failures {
			reason := f.Reason
			if f.Backend != "" {
				reason += " (" + f.Backend + ")"
			}
			t.Add(label(r), strconv.Itoa(f.Count), reason, measure.Shorten(f.Detail))
		}
	}
	return t
}
