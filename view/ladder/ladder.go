// Package ladder draws what happened in a run: a column for each client, one for the lock and one for
// the stock. Time goes down, and each rung is a message or an event.
package ladder

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"strings"

	"oversell/view/frame"
)

//go:embed ladder.svg.tmpl
var files embed.FS

var picture = template.Must(template.ParseFS(files, "ladder.svg.tmpl")) //nolint:gochecknoglobals // parsed once, never written

// Ladder is a picture. Its rungs are in the order of time.
type Ladder struct {
	Title   string
	Unit    string // of the times; empty for the numbers of steps
	Columns []Column
	Rungs   []Rung
	Bands   []Band
}

// Column is a client, the lock, the stock or another server.
type Column struct {
	Name, Note string
	Client     bool
}

// Kind says how a rung is drawn.
type Kind string

// The kinds of rungs.
const (
	Step    Kind = ""        // a message, or something that a client does by itself
	Answer  Kind = "answer"  // a client's last rung
	Refused Kind = "refused" // a write that the stock refused
	Fault   Kind = "fault"
	Alarm   Kind = "alarm" // a sentence about a violation
	Remark  Kind = "note"  // a sentence
	Gap     Kind = "gap"   // a time without rungs
)

// Rung is one row of the picture.
type Rung struct {
	Kind     Kind
	At       string // the time, for the left margin
	Column   int    // where the words stand
	From, To int    // the columns of a message; the same column: no message
	Words    string
	Detail   string // such as a command, below the words; may be empty
	Stock    string // the number of pieces after it, if it changed
	Lost     bool   // Stock shows a lost update
	Anchor   string // the end of the rung's id, for a link to it; may be empty
}

// Shape says how a band is drawn.
type Shape string

// The shapes of bands.
const (
	Waits  Shape = "wait"
	Holds  Shape = "hold"
	Over   Shape = "over"   // the lease is over, but the holder may not know
	Frozen Shape = "frozen" // the process is stopped
	Failed Shape = "failed" // another fault
	Both   Shape = "both"   // two clients hold the lock, and one of them writes
)

// Band is a time in a column, from one rung to another.
type Band struct {
	Column, From, To int // To is the number of rungs for a band to the picture's end
	Shape            Shape
	Name             string // the holder, in the column of the lock
	Shift            int    // to the right of another band, in pixels
}

// Sizes in pixels. The words are not scaled: they are as large as the text of the page.
const (
	margin       = 84 // for the times
	headHeight   = 50
	rowHeight    = 27
	gapHeight    = 22
	detailHeight = 16
	edge         = 19 // of a row: where its arrow is, and where its bands begin and end
	serverRoom   = 118
	letter       = 85 // in tenths, in the widest font
)

// row is a rung with its place.
type row struct {
	Rung
	Y, Height      int
	X, StockX      int    // of the words, and of the number of pieces
	Arrow          string // a path; empty without a message
	Says           string // the words with the name of the client
	BoxX, BoxWidth int    // of a sentence
}

type column struct {
	Column
	X int
}

type bar struct {
	Band
	X, Y, Width, Height, Middle int
}

// drawing has the data of the template.
type drawing struct {
	Ladder
	ID           string
	Width, Foot  int
	Columns      []column
	Rows         []row
	Behind, Bars []bar
}

// Inline returns the picture for a page with the style of package frame, and its text for a screen reader. The id
// must be unique in that page.
func (l Ladder) Inline(id string) template.HTML {
	return frame.Inline(picture, l.draw(id))
}

// Lines returns the picture in words: the clients and their replicas, and each rung with its time.
func (l Ladder) Lines() (lines []string) {
	var clients []string
	for _, c := range l.Columns {
		if c.Client {
			clients = append(clients, c.Name+": "+c.Note)
		}
	}
	lines = append(lines, fmt.Sprintf("%6s  %s", l.Unit, strings.Join(clients, ", ")))
	for _, r := range l.Rungs {
		line := fmt.Sprintf("%6s  %s", r.At, l.says(r))
		if r.Kind == Gap && r.Words == "" {
			line = "        " + r.At
		}
		lines = append(lines, line)
	}
	return lines
}

// says returns the words of a rung, with the name of the client to which something happened.
func (l Ladder) says(r Rung) string {
	if c := l.Columns[r.Column]; c.Client && r.Kind != Alarm && r.Kind != Remark && r.Kind != Gap {
		return c.Name + ": " + r.Words
	}
	return r.Words
}

func (l Ladder) draw(id string) drawing {
	d := drawing{ID: id, Ladder: l, Foot: headHeight}
	d.Columns, d.Width = l.columns()
	for _, r := range l.Rungs {
		p := d.row(r)
		d.Rows, d.Width = append(d.Rows, p), max(d.Width, p.X+width(r.Words), p.X+width(r.Detail))
		d.Foot += p.Height
	}
	d.Foot += 8
	for _, b := range l.Bands {
		if p := d.bar(b); b.Shape == Frozen || b.Shape == Failed {
			d.Behind = append(d.Behind, p)
		} else {
			d.Bars = append(d.Bars, p)
		}
	}
	return d
}

// columns returns the columns with their places, and the width of the picture. A column of a client has
// room for the words of its rungs, unless there are many.
func (l Ladder) columns() (columns []column, width int) {
	clients := 0
	for _, c := range l.Columns {
		if c.Client {
			clients++
		}
	}
	room := max(124, min(210, 660/max(1, clients)))
	x := margin + 28
	for _, c := range l.Columns {
		columns = append(columns, column{c, x})
		if c.Client {
			x += room
		} else {
			x += serverRoom
		}
	}
	return columns, x
}

func (d drawing) row(r Rung) row {
	p := row{Rung: r, Y: d.Foot, Height: rowHeight, X: d.Columns[r.Column].X + 27, Says: d.says(r)}
	p.StockX = d.Columns[len(d.Columns)-1].X + 28
	switch r.Kind {
	case Gap:
		p.Height = gapHeight
	case Alarm, Remark:
		p.BoxX, p.BoxWidth = p.X-10, width(r.Words)+20
	}
	if r.Detail != "" {
		p.Height += detailHeight
	}
	switch from, to := d.Columns[r.From].X, d.Columns[r.To].X; {
	case from < to:
		p.Arrow = fmt.Sprintf("M%d,%dH%dl-9,-5v10l9,-5", from+14, p.Y+edge, to-14)
	case to < from:
		p.Arrow = fmt.Sprintf("M%d,%dH%dl9,-5v10l-9,-5", from-14, p.Y+edge, to+14)
	}
	return p
}

// width returns the width of the words in pixels. A Chinese character is as wide as two letters.
func width(words string) int {
	letters := 0
	for _, r := range words {
		if letters++; r > 0x2e80 {
			letters++
		}
	}
	return letters * letter / 10
}

// bar returns the place of a band.
func (d drawing) bar(b Band) bar {
	widths := map[Shape]int{Waits: 8, Frozen: 46, Failed: 46, Both: 26}
	w, y, end := cmp.Or(widths[b.Shape], 18), d.Rows[b.From].Y+edge, d.Foot
	if b.To < len(d.Rows) {
		end = d.Rows[b.To].Y + edge
	}
	middle := d.Columns[b.Column].X + b.Shift
	return bar{Band: b, X: middle - w/2, Middle: middle, Y: y, Width: w, Height: end - y}
}
