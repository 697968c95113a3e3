package report

import (
	"fmt"
	"strings"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// Charts use per cent for widths and pixels for heights, so that bars grow with the window and
// letters keep their size.

// fullBar is the longest bar's width in per cent. The number beside the bar needs the rest.
const fullBar = 62.0

// Heights in pixels.
const labelHeight, barStep, groupGap = 22, 24, 10

// group has the bars of one result, below its label.
type group struct {
	Label  string
	Height int
	Bars   []bar
}

type bar struct {
	Name, Value, Class string
	figure             float64 // of which Value is the text
	Width              string  // in per cent; the figure stands where the bar ends
	Y                  int
}

// barChart draws the bars of each result. The longest of all has the largest figure.
func barChart(results []measure.Result, barsOf func(measure.Result) []bar) []group {
	groups, largest := make([]group, len(results)), 0.0
	for i, r := range results {
		bars := barsOf(r)
		groups[i] = group{label(r), labelHeight + len(bars)*barStep + groupGap, bars}
		for _, b := range bars {
			largest = max(largest, b.figure)
		}
	}
	for _, g := range groups {
		for i := range g.Bars {
			g.Bars[i].Width = fmt.Sprintf("%.2f", fullBar*max(0, measure.Ratio(g.Bars[i].figure, largest)))
			g.Bars[i].Y = labelHeight + i*barStep
		}
	}
	return groups
}

func throughputBar(r measure.Result) []bar {
	if r.ErrorsOnly() {
		return []bar{{Value: "-", Class: "bar"}}
	}
	return []bar{{Value: fmt.Sprintf("%.1f/s", r.ThroughputPerS), Class: "bar", figure: r.ThroughputPerS}}
}

func lostBar(r measure.Result) []bar {
	class := map[bool]string{true: "alarm", false: "bar"}[r.Verdict == api.Broken]
	return []bar{{Value: lostUpdates(r), Class: class, figure: float64(r.LostUpdates)}}
}

func latencyBars(r measure.Result) (bars []bar) {
	add := func(name string, ms float64, note string) {
		b := bar{Name: name, Value: fmt.Sprintf("%.1f ms", ms) + note, Class: name, figure: ms}
		if r.ErrorsOnly() {
			b.Value, b.figure = "-", 0
		}
		bars = append(bars, b)
	}
	add("p50", r.P50MS, "")
	add("p90", r.P90MS, "")
	add("p95", r.P95MS, "")
	add("p99", r.P99MS, "")
	if r.Open != nil {
		add("sent", r.Open.FromSent.P99, " (p99 from when it was sent)")
	}
	return bars
}

// timeline is the throughput of one strategy over time: the area of all answers, and the line of the sales.
type timeline struct {
	curve
	Table terminal.Table
}

func timelines(results []measure.Result) []timeline {
	lines := make([]timeline, 0, len(results))
	for _, r := range results {
		if len(r.Series.Samples) > 0 {
			lines = append(lines, timelineOf(r))
		}
	}
	return lines
}

func timelineOf(r measure.Result) timeline {
	all, sold := rates(r.Series, r.Series.Samples), rates(r.Series, r.Series.Sold)
	top := 1.0
	for _, rate := range all {
		top = max(top, rate)
	}
	t := timeline{curve: curve{
		Title: label(r), Top: fmt.Sprintf("%.0f/s", top), First: "0 s", Last: fmt.Sprintf("%.1f s", r.Series.EndMS/1000),
		Area: "M0,100 L" + steps(r.Series, all, top) + " L100,100 Z", Line: "M" + steps(r.Series, sold, top),
	}, Table: terminal.Texts("Throughput over time of "+label(r), "From, s", "Requests/s", "Sold/s")}
	t.Says = fmt.Sprintf("Throughput over time of %s, at most %s, until %s", t.Title, t.Top, t.Last)
	for i := range all {
		t.Table.Add(fmt.Sprintf("%.1f", float64(i)*r.Series.BucketMS/1000), fmt.Sprintf("%.0f", all[i]), fmt.Sprintf("%.0f", sold[i]))
	}
	return t
}

// rates returns the counts per second of each bucket. The last bucket may be shorter.
func rates(s measure.Series, counts []int) []float64 {
	rates := make([]float64, len(counts))
	for i, n := range counts {
		wide := min(s.BucketMS, s.EndMS-float64(i)*s.BucketMS)
		if i > 0 && wide < s.BucketMS/4 {
			// In so short a bucket, a single answer would look like a peak. So the previous bucket is added.
			n, wide = n+counts[i-1], wide+s.BucketMS
		}
		rates[i] = measure.Ratio(float64(n), wide/1000)
	}
	return rates
}

// steps draws a horizontal piece for each bucket into a box of 100 x 100, whose upper edge is top.
func steps(s measure.Series, rates []float64, top float64) string {
	points := make([]string, 0, 2*len(rates))
	for i, rate := range rates {
		from, to := float64(i)*s.BucketMS, min(float64(i+1)*s.BucketMS, s.EndMS)
		y := 100 - 100*measure.Ratio(rate, top)
		points = append(points,
			fmt.Sprintf("%.2f,%.2f", 100*measure.Ratio(from, s.EndMS), y), fmt.Sprintf("%.2f,%.2f", 100*measure.Ratio(to, s.EndMS), y))
	}
	return strings.Join(points, " L")
}
