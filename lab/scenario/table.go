package scenario

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/lab/terminal"
)

// Table writes a line per guard: its claim, the runs, the broken runs, and each figure's median. A
// narrow screen gets a table without a frame, and if necessary without the last figures.
func Table(w io.Writer, results []Result, screen terminal.Screen) error {
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
	var rows []table.Row
	for i, guard := range guards {
		if slices.Index(guards, guard) == i {
			rows = append(rows, tableRow(guard, results, figures))
		}
	}
	t.AppendRows(rows)
	framed := t.Render()
	if screen.Width > 0 && text.LongestLineLen(framed) > screen.Width {
		return unframed(header, rows).Write(w, screen)
	}
	if _, err := fmt.Fprintln(w, framed); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func unframed(header table.Row, rows []table.Row) (t terminal.Table) {
	for i, head := range header {
		c := terminal.Column{Head: fmt.Sprint(head), Right: i > 1}
		if i > 3 {
			c.Drop = i
		}
		t.Columns = append(t.Columns, c)
	}
	for _, row := range rows {
		var cells []terminal.Cell
		for _, value := range row {
			cells = append(cells, terminal.Cell{Text: fmt.Sprint(value)})
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
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
