package report

import (
	"io"
	"strings"

	"oversell/lab/measure"
	"oversell/view/terminal"
)

// Table writes the figures that a class needs, in 80 columns.
func Table(w io.Writer, results []measure.Result, screen terminal.Screen) {
	tabulate("", choose(shortTable), results, Column.head, Column.short).Write(w, screen)
}

// JMeterTable writes all columns, the first of which are those of JMeter's aggregate report. If the
// screen is too narrow, the headings take two lines. If the table is still too wide, it is split into
// several tables, each with the column Label.
func JMeterTable(w io.Writer, results []measure.Result, screen terminal.Screen) {
	t := jmeterTable("", jmeterColumns(results), results)
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

func jmeterTable(caption string, from []Column, results []measure.Result) terminal.Table {
	t := tabulate(caption, from, results, func(c Column) string { return c.JMeter }, Column.jmeter)
	for i, c := range from {
		t.Columns[i].Drop = 0
		if c.Stock {
			t.Columns[i].Group = 1
		}
	}
	return t
}

func tabulate(
	caption string, from []Column, results []measure.Result, head func(Column) string, cell func(Column, measure.Result) string,
) terminal.Table {
	t := terminal.Table{Caption: caption}
	for i, c := range from {
		t.Columns = append(t.Columns, terminal.Column{Head: head(c), Right: i > 0, Drop: c.Drop})
	}
	for _, r := range results {
		row := make([]terminal.Cell, len(from))
		for i, c := range from {
			row[i].Text = cell(c, r)
			if c.Signal != nil {
				row[i].Sign = c.Signal(r)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
