package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is a table for a terminal or a page. The first column has the headings of the rows.
type Table struct {
	Caption string // only on a page
	Columns []Column
	Rows    [][]Cell // a cell for each column
	// Frame draws lines around all cells. They would take a fifth of 80 columns.
	Frame bool
}

// Column is a column of a table.
type Column struct {
	Head  string // may have several lines
	Right bool   // numbers are aligned to the right
	Words bool   // on a page, the text may wrap
	// Drop says which columns are left out first on a narrow screen: those with the highest number.
	// Columns with 0 always stay.
	Drop int
	// Group is the number of the table to which Split assigns the column.
	Group int
}

// Cell is a text in the colour of a sign, or without colour if Sign is empty.
type Cell struct{ Text, Sign string }

// Texts returns a table of plain texts, without rows.
func Texts(caption string, heads ...string) Table {
	t := Table{Caption: caption}
	for _, head := range heads {
		t.Columns = append(t.Columns, Column{Head: head})
	}
	return t
}

// Add appends a row of plain texts.
func (t *Table) Add(texts ...string) {
	row := make([]Cell, len(texts))
	for i, words := range texts {
		row[i] = Cell{Text: words}
	}
	t.Rows = append(t.Rows, row)
}

// Write writes the table. On a narrow screen, it leaves out the frame, then columns, and then wraps the last
// column at words. Like all that writes text for people, it returns no error: the output of the program
// remembers its first one.
func (t Table) Write(w io.Writer, screen Screen) {
	t.Frame = t.Frame && (screen.Width <= 0 || t.Width() <= screen.Width)
	for dropped := true; dropped && screen.Width > 0 && t.Width() > screen.Width; {
		dropped = t.dropColumn()
	}
	if last := len(t.Columns) - 1; screen.Width > 0 && t.Width() > screen.Width {
		room := max(10, screen.Width-t.without(last).Width()-len(gap))
		for i, row := range t.Rows {
			row = append([]Cell{}, row...)
			row[last].Text = strings.Join(Wrap(row[last].Text, room, room), "\n")
			t.Rows[i] = row
		}
	}
	fmt.Fprintln(w, t.render(screen))
}

const gap = "  "

// Width returns the width of the whole table in characters.
func (t Table) Width() int { return text.LongestLineLen(t.render(Screen{})) }

// Split returns the table itself if it fits the screen, and otherwise as few tables as its width allows,
// each with the first column and with columns of one group. It leaves out rows that are empty in their table.
func (t Table) Split(screen Screen) []Table {
	fits := func(t Table) bool { return screen.Width <= 0 || t.Width() <= screen.Width }
	if fits(t) {
		return []Table{t}
	}
	var parts []Table
	end := func(columns []int) {
		part := t.only(columns)
		part.Rows = slices.DeleteFunc(part.Rows, func(row []Cell) bool {
			return !slices.ContainsFunc(row[1:], func(c Cell) bool { return c.Text != "" })
		})
		parts = append(parts, part)
	}
	part := []int{0}
	for i := 1; i < len(t.Columns); i++ {
		longer := append(slices.Clone(part), i)
		if len(part) > 1 && (t.Columns[i].Group != t.Columns[i-1].Group || !fits(t.only(longer))) {
			end(part)
			longer = []int{0, i}
		}
		part = longer
	}
	end(part)
	return parts
}

// only returns the table with some of its columns.
func (t Table) only(columns []int) Table {
	rows := t.Rows
	t.Columns, t.Rows = selected(t.Columns, columns), make([][]Cell, len(rows))
	for i, row := range rows {
		t.Rows[i] = selected(row, columns)
	}
	return t
}

func selected[T any](all []T, indexes []int) (some []T) {
	for _, i := range indexes {
		some = append(some, all[i])
	}
	return some
}

func (t Table) without(at int) Table {
	var rest []int
	for i := range t.Columns {
		if i != at {
			rest = append(rest, i)
		}
	}
	return t.only(rest)
}

func (t *Table) dropColumn() bool {
	at := 0
	for i, c := range t.Columns {
		if c.Drop > t.Columns[at].Drop {
			at = i
		}
	}
	if t.Columns[at].Drop == 0 {
		return false
	}
	*t = t.without(at)
	return true
}

func (t Table) render(screen Screen) string {
	w := table.NewWriter()
	style := table.StyleLight
	if !t.Frame {
		style.Options = table.Options{SeparateHeader: true}
		style.Box.PaddingLeft, style.Box.PaddingRight = "", gap
	}
	style.Format.Header = text.FormatDefault
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
	if t.Frame {
		return w.Render()
	}
	lines := strings.Split(w.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimSuffix(line, "──"), " ") // without the gap after the last column
	}
	return strings.Join(lines, "\n")
}
