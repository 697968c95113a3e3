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

// Table writes a line per guard: its claim, the runs, the broken runs, and each figure's median.
func Table(w io.Writer, results []Result) error {
	var guards, figures []string
	for _, r := range results {
		guards = append(guards, r.Guard)
		figures = slices.AppendSeq(figures, maps.Keys(r.Figures))
	}
	slices.Sort(figures)
	figures = slices.Compact(figures)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"guard", "claims", "runs", "broke"}
	for _, name := range figures {
		header = append(header, name)
	}
	var columns []table.ColumnConfig
	for number := 3; number <= len(header); number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	for i, guard := range guards {
		if slices.Index(guards, guard) == i {
			t.AppendRow(tableRow(guard, results, figures))
		}
	}
	if _, err := fmt.Fprintln(w, t.Render()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func tableRow(guard string, results []Result, figures []string) table.Row {
	runs, broke, claims, values := 0, 0, "breaks", map[string][]float64{}
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
			values[name] = append(values[name], value)
		}
	}
	row := table.Row{guard, claims, runs, broke}
	for _, name := range figures {
		row = append(row, median(values[name]))
	}
	return row
}

// median returns the median, or "" without values. Of two middle values it returns the lower one.
func median(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	middle, digits := values[(len(values)-1)/2], 1
	if middle >= 100 || middle == float64(int(middle)) {
		digits = 0
	}
	return strconv.FormatFloat(middle, 'f', digits, 64)
}
