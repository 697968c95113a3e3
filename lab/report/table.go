package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/lab/terminal"
)

type column struct {
	head  string
	cell  func(Result) string
	stock bool // JMeter cannot measure it
	alarm func(Result) bool
}

// columns returns the columns. The first are those of JMeter's aggregate report, in its order.
func columns(results []Result) []column {
	all := closedColumns()
	if anyOpen(results) {
		all = slices.Insert(all, slices.IndexFunc(all, func(c column) bool { return c.stock }), openColumns()...)
	}
	return all
}

func closedColumns() []column {
	number := func(head string, of func(Result) int) column {
		return column{head: head, cell: func(r Result) string { return strconv.Itoa(of(r)) }}
	}
	figure := func(head, format string, of func(Result) float64) column {
		return column{head: head, cell: func(r Result) string { return sampled(r, format, of(r)) }}
	}
	stock := func(c column) column { c.stock = true; return c }
	return []column{
		{head: "Label", cell: label},
		number("# Samples", func(r Result) int { return r.Samples }),
		figure("Average", "%.1f", func(r Result) float64 { return r.MeanMS }),
		figure("Median", "%.1f", func(r Result) float64 { return r.P50MS }),
		figure("90% Line", "%.1f", func(r Result) float64 { return r.P90MS }),
		figure("95% Line", "%.1f", func(r Result) float64 { return r.P95MS }),
		figure("99% Line", "%.1f", func(r Result) float64 { return r.P99MS }),
		figure("Min", "%.1f", func(r Result) float64 { return r.MinMS }),
		figure("Maximum", "%.1f", func(r Result) float64 { return r.MaxMS }),
		figure("Error %", "%.2f%%", func(r Result) float64 { return r.ErrorPct }),
		figure("Throughput", "%.1f/sec", func(r Result) float64 { return r.ThroughputPerS }),
		figure("Received KB/sec", "%.2f", func(r Result) float64 { return r.ReceivedKBPerS }),
		figure("Sent KB/sec", "%.2f", func(r Result) float64 { return r.SentKBPerS }),
		stock(number("Sold", func(r Result) int { return r.Sold })),
		{head: "Remaining", cell: remaining, stock: true},
		{head: "Lost updates", cell: lostUpdates, stock: true, alarm: func(r Result) bool { return r.LostUpdates != 0 }},
		stock(number("Retries", func(r Result) int { return r.Retries })),
		stock(figure("Fairness", "%.2f", func(r Result) float64 { return r.Fairness })),
	}
}

func sampled(r Result, format string, value float64) string {
	if r.Samples == 0 {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

func label(r Result) string {
	if r.Partial {
		return r.Strategy + " (partial)"
	}
	return r.Strategy
}

func remaining(r Result) string {
	if r.Remaining == nil {
		return "?"
	}
	return strconv.Itoa(*r.Remaining)
}

// lostUpdates adds a word to a number other than 0, for readers who see no colours.
func lostUpdates(r Result) string {
	switch {
	case r.LostUpdates > 0:
		return fmt.Sprintf("%d LOST", r.LostUpdates)
	case r.LostUpdates < 0:
		return fmt.Sprintf("%d GONE", r.LostUpdates)
	case r.Remaining == nil:
		return "?"
	case r.LostUpdatesMax > 0:
		return fmt.Sprintf("0 to %d?", r.LostUpdatesMax)
	default:
		return "0"
	}
}

// JMeterTable writes all columns, the first of which are those of JMeter's aggregate report. If the
// screen is too narrow, the headings take two lines. If the table is still too wide, it is split into
// several tables, each with the column Label.
func JMeterTable(w io.Writer, results []Result, screen terminal.Screen) error {
	all := columns(results)
	parts := [][]column{all}
	if screen.Width > 0 && total(all, results) > screen.Width {
		for i := range all {
			all[i].head = strings.Replace(all[i].head, " ", "\n", 1)
		}
		parts = split(all, results, screen.Width)
	}
	for _, part := range parts {
		if _, err := fmt.Fprintln(w, tabulate("", part, results).render(screen)); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return nil
}

// total returns the width of a table in characters, with its frame.
func total(all []column, results []Result) int {
	wide := 1
	for _, c := range all {
		longest := text.LongestLineLen(c.head)
		for _, r := range results {
			longest = max(longest, text.StringWidth(c.cell(r)))
		}
		wide += longest + 3
	}
	return wide
}

// split packs the columns into as few tables as the width allows. If one is not enough, the
// columns that JMeter cannot measure begin a table of their own.
func split(all []column, results []Result, width int) [][]column {
	if total(all, results) <= width {
		return [][]column{all}
	}
	var parts [][]column
	part := all[:1:1]
	for i, c := range all[1:] {
		before := all[i]
		if len(part) > 1 && (c.stock != before.stock || total(append(part, c), results) > width) {
			parts = append(parts, part)
			part = all[:1:1]
		}
		part = append(part, c)
	}
	return append(parts, part)
}

func (g grid) render(screen terminal.Screen) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := make(table.Row, len(g.Head))
	configs := make([]table.ColumnConfig, len(g.Head))
	for i, c := range g.Head {
		head[i] = c.Text
		configs[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight, VAlignHeader: text.VAlignBottom}
		if i == 0 {
			configs[i] = table.ColumnConfig{Number: 1, VAlignHeader: text.VAlignBottom}
		}
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(configs)
	for _, cells := range g.Rows {
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = c.Text
			if c.Alarm {
				row[i] = screen.Paint(terminal.Bad, c.Text)
			}
		}
		t.AppendRow(row)
	}
	return t.Render()
}
