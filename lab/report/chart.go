package report

import (
	"fmt"
	"strings"

	"oversell/lab/check"
)

// Charts are drawn in per cent of the width and in pixels of height, so that bars grow
// with the window while the letters keep their size: legible on a telephone and on a
// projector alike.

// fullBar is the longest bar's share of the width. The rest is for its figure.
const fullBar = 62.0

// Heights in pixels.
const (
	barStep     = 54                      // label, bar, gap
	percentStep = 24                      // one percentile's bar
	groupStep   = 22 + 4*percentStep + 10 // label, four bars, gap
)

// bar is one horizontal bar with its label and its figure.
type bar struct {
	Label string
	Value string
	Y     int
	Width string // per cent; the figure stands where the bar ends
	Alarm bool
}

// group is the latency of one strategy, a bar for each percentile.
type group struct {
	Label string
	Bars  []bar
}

func width(value, longest float64) string {
	return fmt.Sprintf("%.2f", fullBar*max(0, ratio(value, longest)))
}

func throughputChart(results []Result) chart {
	longest := 0.0
	for _, r := range results {
		longest = max(longest, r.ThroughputPerS)
	}
	bars := make([]bar, len(results))
	for i, r := range results {
		bars[i] = bar{Label: label(r), Value: fmt.Sprintf("%.1f/s", r.ThroughputPerS), Y: i * barStep}
		bars[i].Width = width(r.ThroughputPerS, longest)
	}
	return chart{Height: len(bars) * barStep, Bars: bars, Table: tabulate("", pick(results, "# Samples", "Throughput", "Error %"), results)}
}

func lostChart(results []Result) chart {
	longest := 0
	for _, r := range results {
		longest = max(longest, r.LostUpdates)
	}
	bars := make([]bar, len(results))
	for i, r := range results {
		bars[i] = bar{Label: label(r), Value: lostUpdates(r), Y: i * barStep, Alarm: r.Verdict == check.Broken}
		bars[i].Width = width(float64(r.LostUpdates), float64(longest))
	}
	return chart{Height: len(bars) * barStep, Bars: bars, Table: tabulate("", pick(results, "Sold", "Remaining", "Lost updates"), results)}
}

// percentiles are what the latency chart shows of a result.
func percentiles(r Result) []fact {
	return []fact{
		{"p50", ms(r.P50MS)}, {"p90", ms(r.P90MS)}, {"p95", ms(r.P95MS)}, {"p99", ms(r.P99MS)},
	}
}

func ms(value float64) string { return fmt.Sprintf("%.1f ms", value) }

func latencyChart(results []Result) chart {
	longest := 0.0
	for _, r := range results {
		longest = max(longest, r.P99MS)
	}
	height := groupStep
	if anyOpen(results) {
		height += percentStep
	}
	groups := make([]group, len(results))
	for i, r := range results {
		groups[i] = group{Label: label(r)}
		values := []float64{r.P50MS, r.P90MS, r.P95MS, r.P99MS}
		for j, p := range percentiles(r) {
			b := bar{Label: p.Name, Value: p.Value, Y: 22 + j*percentStep}
			b.Width = width(values[j], longest)
			groups[i].Bars = append(groups[i].Bars, b)
		}
		if r.Open != nil {
			groups[i].Bars = append(groups[i].Bars, sentBar(r, longest))
		}
	}
	return chart{
		Height: height, Groups: groups,
		Table: tabulate("", pick(results, "Median", "90% Line", "95% Line", "99% Line", "Median sent", "99% sent"), results),
	}
}

// sentBar is the 99th percentile as a closed loop would have counted it.
func sentBar(r Result, longest float64) bar {
	p99 := r.Open.FromSent.P99
	return bar{Label: "sent", Value: ms(p99) + " (p99 from when it was sent)", Y: 22 + 4*percentStep, Width: width(p99, longest)}
}

// timeline is one strategy's throughput over time, drawn into a box of 100 x 100.
type timeline struct {
	Label string
	Top   string // the highest rate
	End   string // the last moment
	All   string // the answers, an area
	Sold  string // of which sold, a line
	Rows  []timelineRow
}

type timelineRow struct{ From, All, Sold string }

func timelines(results []Result) []timeline {
	lines := make([]timeline, 0, len(results))
	for _, r := range results {
		if len(r.Series.Samples) > 0 {
			lines = append(lines, r.timeline())
		}
	}
	return lines
}

func (r Result) timeline() timeline {
	all, sold := r.Series.rates(r.Series.Samples), r.Series.rates(r.Series.Sold)
	top := 1.0
	for _, rate := range all {
		top = max(top, rate)
	}
	t := timeline{
		Label: label(r), Top: fmt.Sprintf("%.0f/s", top), End: fmt.Sprintf("%.1f s", r.Series.EndMS/1000),
		All: "M0,100 L" + r.Series.steps(all, top) + " L100,100 Z", Sold: "M" + r.Series.steps(sold, top),
	}
	for i := range all {
		t.Rows = append(t.Rows, timelineRow{
			From: fmt.Sprintf("%.1f", float64(i)*r.Series.BucketMS/1000),
			All:  fmt.Sprintf("%.0f", all[i]), Sold: fmt.Sprintf("%.0f", sold[i]),
		})
	}
	return t
}

// rates are per second. The last bucket is as wide as the run left it.
func (s Series) rates(counts []int) []float64 {
	rates := make([]float64, len(counts))
	for i, n := range counts {
		wide := min(s.BucketMS, s.EndMS-float64(i)*s.BucketMS)
		if i > 0 && wide < s.BucketMS/4 {
			// Too short to be a rate of its own: a single answer in it would be a peak.
			rates[i] = ratio(float64(n+counts[i-1]), (wide+s.BucketMS)/1000)
			continue
		}
		rates[i] = ratio(float64(n), wide/1000)
	}
	return rates
}

// steps draws each bucket as a level, in a box of 100 x 100 whose top is the rate top.
func (s Series) steps(rates []float64, top float64) string {
	points := make([]string, 0, 2*len(rates))
	for i, rate := range rates {
		from, to := float64(i)*s.BucketMS, min(float64(i+1)*s.BucketMS, s.EndMS)
		y := 100 - 100*ratio(rate, top)
		points = append(points,
			fmt.Sprintf("%.2f,%.2f", 100*ratio(from, s.EndMS), y), fmt.Sprintf("%.2f,%.2f", 100*ratio(to, s.EndMS), y))
	}
	return strings.Join(points, " L")
}
