package scenario

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table writes a row for each guard of the results, which are one scenario's: how many of
// its runs broke the invariant, and the median of each figure.
func Table(w io.Writer, results []Result) error {
	var guards, figures []string
	for _, r := range results {
		if !slices.Contains(guards, r.Guard) {
			guards = append(guards, r.Guard)
		}
		for name := range maps.Keys(r.Figures) {
			if !slices.Contains(figures, name) {
				figures = append(figures, name)
			}
		}
	}
	slices.Sort(figures)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{"guard", "claims", "runs", "broke"}
	columns := []table.ColumnConfig{{Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight}}
	for _, name := range figures {
		head = append(head, name)
		columns = append(columns, table.ColumnConfig{Number: len(head), Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(columns)
	for _, guard := range guards {
		t.AppendRow(tableRow(guard, results, figures))
	}
	if _, err := fmt.Fprintln(w, t.Render()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func tableRow(guard string, results []Result, figures []string) table.Row {
	runs, broke, claims, seen := 0, 0, "breaks", map[string][]float64{}
	for _, r := range results {
		if r.Guard != guard {
			continue
		}
		runs++
		if !r.Holds() {
			broke++
		}
		if r.Safe {
			claims = "safe"
		}
		for name, value := range r.Figures {
			seen[name] = append(seen[name], value)
		}
	}
	row := table.Row{guard, claims, runs, broke}
	for _, name := range figures {
		row = append(row, median(seen[name]))
	}
	return row
}

// median is the middle one in words; a guard without that figure has none.
func median(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	const whole = 100 // from here on nobody looks at tenths
	middle, digits := values[(len(values)-1)/2], 1
	if middle >= whole || middle == float64(int(middle)) {
		digits = 0
	}
	return strconv.FormatFloat(middle, 'f', digits, 64)
}
