package terminal

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Markdown returns a table whose first row is the head. align is for all columns but the first, which
// is aligned to the left.
func Markdown(align text.Align, rows ...[]string) string {
	w := table.NewWriter()
	w.Style().Format.Header = text.FormatDefault
	var columns []table.ColumnConfig
	for i := range rows[0][1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: align})
	}
	w.SetColumnConfigs(columns)
	w.AppendHeader(rowOf(rows[0]))
	for _, cells := range rows[1:] {
		w.AppendRow(rowOf(cells))
	}
	return w.RenderMarkdown()
}

func rowOf(cells []string) (row table.Row) {
	for _, cell := range cells {
		row = append(row, cell)
	}
	return row
}

// Columns returns lines whose cells stand below each other, without a head and a frame.
func Columns(rows ...[]string) string {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", gap
	w.SetStyle(style)
	for _, cells := range rows {
		w.AppendRow(rowOf(cells))
	}
	var lines strings.Builder
	for line := range strings.Lines(w.Render()) {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return lines.String()
}
