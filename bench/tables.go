package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/lab/ratio"
	"oversell/view/terminal"
)

// column is a column of a table, with a cell for the measurements of each candidate.
type column struct {
	title string
	cell  func([]figures) string
}

// median is a column with the median of a figure, and its 95 % interval in brackets.
func median(title string, of figure, digits int) column {
	return column{title, func(m []figures) string { return ranged(m, of, digits) }}
}

// table prints a row for each candidate.
func (b *bench) table(title string, names []string, measured map[string][]figures, columns ...column) {
	rows := [][]string{{title}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.title)
	}
	for _, name := range names {
		row := []string{name}
		for _, c := range columns {
			row = append(row, c.cell(measured[name]))
		}
		rows = append(rows, row)
	}
	b.rows(rows)
}

// rows prints a table whose first row is the head.
func (b *bench) rows(rows [][]string) {
	b.printf("%s\n\n", terminal.Markdown(text.AlignRight, rows...))
}

// comparison is a target for one of ours: its least ratio to the rate of each of the others.
type comparison struct {
	ours   string
	others []string
	least  float64
	p99    float64 // the highest ratio of our p99 to that of another one; 0 means any
}

// compare prints the ratios in the same rounds, beside the wanted ones.
func (b *bench) compare(all []comparison, measured map[string][]figures) {
	rows := [][]string{{"ours, against", "times its rate", "wanted", "times its p99", "wanted"}}
	for _, c := range all {
		for _, other := range c.others {
			row := []string{
				c.ours + ", against " + other, times(measured[c.ours], measured[other], rate), fmt.Sprintf("%.2f", c.least),
				times(measured[c.ours], measured[other], p99), "-",
			}
			if c.p99 > 0 {
				row[4] = fmt.Sprintf("%.1f or less", c.p99)
			}
			rows = append(rows, row)
		}
	}
	b.printf("Ratios in the same round; ~ means that no difference is shown.\n\n")
	b.rows(rows)
}

// ranged formats the median, with its 95 % interval in brackets.
func ranged(all []figures, of figure, digits int) string {
	return ratio.Of(values(all, of)).Text(digits)
}

// times formats how many times a value of ours is that of another one, in the same round. ~ means that no difference
// is shown.
func times(ours, other []figures, of figure) string {
	r := ratio.Paired("", "", values(ours, of), values(other, of))
	if !r.Differs() {
		return "~ " + r.Ratio.Text(2)
	}
	return r.Ratio.Text(2)
}
