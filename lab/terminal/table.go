package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is a table without a frame, because a frame would take a fifth of 80 columns.
type Table struct {
	Columns []Column
	Rows    [][]Cell // a cell for each column
}

// Column is a column of a table.
type Column struct {
	Head  string // may have several lines
	Right bool   // numbers are aligned to the right
	// Drop says which columns are left out first on a narrow screen: those with the highest number.
	// Columns with 0 always stay.
	Drop int
}

// Cell is a text in the colour of a sign, or without colour if Sign is empty.
type Cell struct{ Text, Sign string }

// Write writes the table. On a narrow screen, it leaves out columns, and then wraps the last column
// at words.
func (t Table) Write(w io.Writer, screen Screen) error {
	for screen.Width > 0 && t.Width() > screen.Width && t.dropColumn() {
	}
	if last := len(t.Columns) - 1; screen.Width > 0 && t.Width() > screen.Width {
		room := max(10, screen.Width-t.Width()+t.columnWidth(last))
		for i, row := range t.Rows {
			row = append([]Cell{}, row...)
			row[last].Text = strings.Join(Wrap(row[last].Text, room, room), "\n")
			t.Rows[i] = row
		}
	}
	_, err := fmt.Fprintln(w, t.render(screen))
	if err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

const gap = "  "

// Width returns the width of the whole table in characters.
func (t Table) Width() int {
	width := len(gap) * (len(t.Columns) - 1)
	for i := range t.Columns {
		width += t.columnWidth(i)
	}
	return width
}

func (t Table) columnWidth(i int) int {
	longest := text.LongestLineLen(t.Columns[i].Head)
	for _, row := range t.Rows {
		longest = max(longest, text.LongestLineLen(row[i].Text))
	}
	return longest
}

func (t *Table) dropColumn() bool {
	at, most := -1, 0
	for i, c := range t.Columns {
		if c.Drop > most {
			at, most = i, c.Drop
		}
	}
	if at < 0 {
		return false
	}
	t.Columns = without(t.Columns, at)
	rows := make([][]Cell, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = without(row, at)
	}
	t.Rows = rows
	return true
}

func without[T any](all []T, i int) []T {
	return append(append([]T{}, all[:i]...), all[i+1:]...)
}

func (t Table) render(screen Screen) string {
	w := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", gap
	w.SetStyle(style)
	head := make(table.Row, len(t.Columns))
	var configs []table.ColumnConfig
	for i, c := range t.Columns {
		head[i] = c.Head
		align := text.AlignLeft
		if c.Right {
			align = text.AlignRight
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, VAlignHeader: text.VAlignBottom})
	}
	w.AppendHeader(head)
	w.SetColumnConfigs(configs)
	for _, cells := range t.Rows {
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = screen.Paint(c.Sign, c.Text)
		}
		w.AppendRow(row)
	}
	lines := strings.Split(w.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimSuffix(line, "──"), " ") // without the gap after the last column
	}
	return strings.Join(lines, "\n")
}
