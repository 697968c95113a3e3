package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"oversell/lab/measure"
	"oversell/view/terminal"
)

type column struct {
	head  string
	cell  func(measure.Result) string
	stock bool // JMeter cannot measure it
	alarm func(measure.Result) bool
}

// columns returns the columns. The first are those of JMeter's aggregate report, in its order.
func columns(results []measure.Result) []column {
	all := closedColumns()
	if anyOpen(results) {
		all = slices.Insert(all, slices.IndexFunc(all, func(c column) bool { return c.stock }), openColumns()...)
	}
	return all
}

func closedColumns() []column {
	number := func(head string, of func(measure.Result) int) column {
		return column{head: head, cell: func(r measure.Result) string { return strconv.Itoa(of(r)) }}
	}
	figure := func(head, format string, of func(measure.Result) float64) column {
		return column{head: head, cell: func(r measure.Result) string { return sampled(r, format, of(r)) }}
	}
	stock := func(c column) column { c.stock = true; return c }
	return []column{
		{head: "Label", cell: label},
		number("# Samples", func(r measure.Result) int { return r.Samples }),
		figure("Average", "%.1f", func(r measure.Result) float64 { return r.MeanMS }),
		figure("Median", "%.1f", func(r measure.Result) float64 { return r.P50MS }),
		figure("90% Line", "%.1f", func(r measure.Result) float64 { return r.P90MS }),
		figure("95% Line", "%.1f", func(r measure.Result) float64 { return r.P95MS }),
		figure("99% Line", "%.1f", func(r measure.Result) float64 { return r.P99MS }),
		figure("Min", "%.1f", func(r measure.Result) float64 { return r.MinMS }),
		figure("Maximum", "%.1f", func(r measure.Result) float64 { return r.MaxMS }),
		figure("Error %", "%.2f%%", func(r measure.Result) float64 { return r.ErrorPct }),
		figure("Throughput", "%.1f/sec", func(r measure.Result) float64 { return r.ThroughputPerS }),
		figure("Received KB/sec", "%.2f", func(r measure.Result) float64 { return r.ReceivedKBPerS }),
		figure("Sent KB/sec", "%.2f", func(r measure.Result) float64 { return r.SentKBPerS }),
		stock(number("Sold", func(r measure.Result) int { return r.Sold })),
		{head: "Remaining", cell: func(r measure.Result) string { return left(r, strconv.Itoa) }, stock: true},
		{head: "Lost updates", cell: lostUpdates, stock: true, alarm: func(r measure.Result) bool { return r.LostUpdates != 0 }},
		{head: "Retries", cell: unlessZero("%.0f", func(r measure.Result) float64 { return float64(r.Retries) }), stock: true},
		{head: "Fairness", cell: unlessZero("%.2f", func(r measure.Result) float64 { return r.Fairness }), stock: true},
	}
}

func sampled(r measure.Result, format string, value float64) string {
	if r.Samples == 0 {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

// unlessZero leaves a cell empty whose figure means nothing: no request has tried again, or each client had one loop.
func unlessZero(format string, of func(measure.Result) float64) func(measure.Result) string {
	return func(r measure.Result) string {
		if of(r) == 0 {
			return ""
		}
		return fmt.Sprintf(format, of(r))
	}
}

func label(r measure.Result) string {
	if r.Partial {
		return r.Strategy + " (partial)"
	}
	return r.Strategy
}

// lostUpdates adds a word to a number other than 0, for readers who see no colours.
func lostUpdates(r measure.Result) string {
	text := lost(r, strconv.Itoa)
	switch {
	case r.LostUpdates > 0:
		text += " LOST"
	case r.LostUpdates < 0:
		text += " GONE"
	case r.Remaining != nil && r.LostUpdatesMax > 0:
		text += "?"
	}
	return text
}

// JMeterTable writes all columns, the first of which are those of JMeter's aggregate report. If the
// screen is too narrow, the headings take two lines. If the table is still too wide, it is split into
// several tables, each with the column Label.
func JMeterTable(w io.Writer, results []measure.Result, screen terminal.Screen) {
	t := tabulate("", columns(results), results)
	t.Frame = true
	if screen.Width > 0 && t.Width() > screen.Width {
		for i := range t.Columns {
			t.Columns[i].Head = strings.Replace(t.Columns[i].Head, " ", "\n", 1)
		}
	}
	for _, part := range t.Split(screen) {
		part.Write(w, screen)
	}
}

func tabulate(caption string, from []column, results []measure.Result) terminal.Table {
	t := terminal.Table{Caption: caption}
	for i, c := range from {
		group := 0
		if c.stock {
			group = 1
		}
		t.Columns = append(t.Columns, terminal.Column{Head: c.head, Right: i > 0, Group: group})
	}
	for _, r := range results {
		row := make([]terminal.Cell, len(from))
		for i, c := range from {
			row[i] = alarmed(c.cell(r), terminal.Bad, c.alarm != nil && c.alarm(r))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func anyOpen(results []measure.Result) bool {
	return slices.ContainsFunc(results, func(r measure.Result) bool { return r.Open != nil })
}

func openColumns() []column {
	cell := func(format string, of func(*measure.Open) float64) func(measure.Result) string {
		return func(r measure.Result) string {
			if r.Open == nil {
				return "-"
			}
			return sampled(r, format, of(r.Open))
		}
	}
	missed := func(r measure.Result) bool { return r.Open != nil && !r.Open.Reached }
	return []column{
		{head: "Rate due", cell: cell("%.1f/sec", func(o *measure.Open) float64 { return o.DuePerS }), stock: true},
		{head: "Rate sent", cell: cell("%.1f/sec", func(o *measure.Open) float64 { return o.SentPerS }), stock: true, alarm: missed},
		{head: "Median sent", cell: cell("%.1f", func(o *measure.Open) float64 { return o.FromSent.P50 }), stock: true},
		{head: "99% sent", cell: cell("%.1f", func(o *measure.Open) float64 { return o.FromSent.P99 }), stock: true},
	}
}
