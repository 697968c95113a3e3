package terminal

import (
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
	for i, cells := range rows {
		row := make(table.Row, len(cells))
		for j, cell := range cells {
			row[j] = cell
		}
		if i == 0 {
			w.AppendHeader(row)
		} else {
			w.AppendRow(row)
		}
	}
	return w.RenderMarkdown()
}
