package stage

import (
	"slices"

	"oversell/view/frame"
)

// drawing has the methods of the template: a stage with its coordinates, in a picture of 652 by 300.
type drawing struct {
	Stage
	frame.Words
	ID string
}

// placed is a box with its place, from the top of the picture.
type placed struct {
	Box
	Y, Height, Middle int
	OwnLock           bool // with its own lock in it
	Held              bool
	d                 drawing
}

// Words returns what the box does.
func (p placed) Words() string { return p.d.In(p.words()) }

const height, gap = 258, 12

// Stack places boxes below each other.
func (d drawing) Stack(boxes []Box) []placed {
	all := make([]placed, len(boxes))
	each := min(80, (height-gap*(len(boxes)-1))/max(1, len(boxes)))
	y := 8 + (height-each*len(boxes)-gap*(len(boxes)-1))/2
	for i, b := range boxes {
		all[i] = placed{b, y, each, y + each/2, d.Lock == EachServer, d.Holder == b.Name, d}
		y += each + gap
	}
	return all
}

// HasServer reports whether the lock has a box: a server that is asked before the row.
func (d drawing) HasServer() bool {
	return !slices.Contains([]Place{Nowhere, EachServer, TheRow}, d.Lock)
}

// RowY returns the top of the row: in the middle, if no lock stands above it.
func (d drawing) RowY() int {
	if d.HasServer() {
		return 158
	}
	return 83
}

// RowMiddle returns where the arrows of the replicas end.
func (d drawing) RowMiddle() int { return d.RowY() + 54 }

// Waiting returns at most three of the queue.
func (d drawing) Waiting() []string { return d.Queue[:min(3, len(d.Queue))] }

// More returns the number of those that wait beyond Waiting.
func (d drawing) More() int { return len(d.Queue) - len(d.Waiting()) }
