package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Screen is where a table is shown.
type Screen struct {
	Width int  // in characters; 0: as wide as it takes
	Color bool // lost updates in red; they are marked with a word in any case
}

// column is one column of the result table.
type column struct {
	head  string
	cell  func(Result) string
	stock bool // belongs to the shop's figures, not to JMeter's
	alarm func(Result) bool
}

// columns are JMeter's aggregate report in its order, then what JMeter can't know.
func columns(results []Result) []column {
	all := closedColumns()
	if anyOpen(results) {
		all = slices.Insert(all, slices.IndexFunc(all, func(c column) bool { return c.stock }), openColumns()...)
	}
	return all
}

func closedColumns() []column {
	number := func(of func(Result) int) func(Result) string {
		return func(r Result) string { return strconv.Itoa(of(r)) }
	}
	ms := func(of func(Result) float64) func(Result) string {
		return func(r Result) string { return sampled(r, "%.1f", of(r)) }
	}
	rate := func(format string, of func(Result) float64) func(Result) string {
		return func(r Result) string { return sampled(r, format, of(r)) }
	}
	return []column{
		{head: "Label", cell: label},
		{head: "# Samples", cell: number(func(r Result) int { return r.Samples })},
		{head: "Average", cell: ms(func(r Result) float64 { return r.MeanMS })},
		{head: "Median", cell: ms(func(r Result) float64 { return r.P50MS })},
		{head: "90% Line", cell: ms(func(r Result) float64 { return r.P90MS })},
		{head: "95% Line", cell: ms(func(r Result) float64 { return r.P95MS })},
		{head: "99% Line", cell: ms(func(r Result) float64 { return r.P99MS })},
		{head: "Min", cell: ms(func(r Result) float64 { return r.MinMS })},
		{head: "Maximum", cell: ms(func(r Result) float64 { return r.MaxMS })},
		{head: "Error %", cell: rate("%.2f%%", func(r Result) float64 { return r.ErrorPct })},
		{head: "Throughput", cell: rate("%.1f/sec", func(r Result) float64 { return r.ThroughputPerS })},
		{head: "Received KB/sec", cell: rate("%.2f", func(r Result) float64 { return r.ReceivedKBPerS })},
		{head: "Sent KB/sec", cell: rate("%.2f", func(r Result) float64 { return r.SentKBPerS })},
		{head: "Sold", cell: number(func(r Result) int { return r.Sold }), stock: true},
		{head: "Remaining", cell: remaining, stock: true},
		{head: "Lost updates", cell: lostUpdates, stock: true, alarm: func(r Result) bool { return r.LostUpdates != 0 }},
		{head: "Retries", cell: number(func(r Result) int { return r.Retries }), stock: true},
		{head: "Fairness", cell: rate("%.2f", func(r Result) float64 { return r.Fairness }), stock: true},
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

// lostUpdates marks what is not zero with a word, for who sees no colours.
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

// Table writes the result table. Where the screen is too narrow for it, the heads take
// two lines, and if that is not enough it becomes two or more tables below each other,
// each with the labels.
func Table(w io.Writer, results []Result, screen Screen) error {
	all := columns(results)
	parts := [][]column{all}
	if screen.Width > 0 && total(all, results) > screen.Width {
		for i := range all {
			all[i].head = strings.Replace(all[i].head, " ", "\n", 1)
		}
		parts = split(all, results, screen.Width)
	}
	for _, part := range parts {
		if _, err := fmt.Fprintln(w, tabulate("", part, results).render(screen.Color)); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return nil
}

// The frame of a table, in characters.
const (
	border  = 1 // once
	padding = 3 // for each column
)

func total(all []column, results []Result) int {
	wide := border
	for _, c := range all {
		wide += breadth(c, results) + padding
	}
	return wide
}

// split packs the columns into as few tables as the width allows. When one is not
// enough, the shop's columns begin a table of their own.
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

func breadth(c column, results []Result) int {
	wide := text.LongestLineLen(c.head)
	for _, r := range results {
		wide = max(wide, text.StringWidth(c.cell(r)))
	}
	return wide
}

// render draws the grid for a terminal.
func (g grid) render(color bool) string {
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
			if color && c.Alarm {
				row[i] = "\x1b[1;31m" + c.Text + "\x1b[0m"
			}
		}
		t.AppendRow(row)
	}
	return t.Render()
}

// Sentences writes one line for each result, the Chinese one below if asked for.
func Sentences(w io.Writer, results []Result, chinese bool) error {
	for _, r := range results {
		lines := r.Sentence.EN + "\n"
		if chinese {
			lines += r.Sentence.ZH + "\n"
		}
		for _, warning := range r.Warnings {
			lines += "  warning: " + shorten(warning) + "\n"
		}
		if _, err := io.WriteString(w, lines); err != nil {
			return fmt.Errorf("write sentences: %w", err)
		}
	}
	return nil
}
