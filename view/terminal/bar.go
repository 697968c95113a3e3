package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Bar is a progress bar in the last line of a terminal. Call its methods from one goroutine.
//
// It moves the cursor with carriage returns only, and never fills the last column: there some
// terminals begin a new line, so that the bar could not be drawn over.
type Bar struct {
	out   io.Writer
	drawn time.Time // zero if the line is empty
}

// NewBar returns a bar without a line. It returns nil if out is no terminal that can show it.
func NewBar(out io.Writer) *Bar {
	if !Of(out).Moves {
		return nil
	}
	return &Bar{out: out}
}

// Draw draws the bar, ten times per second at most.
func (b *Bar) Draw(label string, done, total int, after string) {
	if !b.drawn.IsZero() && time.Since(b.drawn) < 100*time.Millisecond {
		return
	}
	b.Begin(label, done, total, after)
}

// Begin draws the bar at once.
func (b *Bar) Begin(label string, done, total int, after string) {
	width := b.width()
	_, _ = fmt.Fprintf(b.out, "\r%-*s\r", width, barLine(label, done, total, after, width))
	b.drawn = time.Now()
}

// Clear empties the line, so that other text can be written there. Without a bar, it does nothing.
func (b *Bar) Clear() {
	if b == nil || b.drawn.IsZero() {
		return
	}
	_, _ = fmt.Fprintf(b.out, "\r%*s\r", b.width(), "")
	b.drawn = time.Time{}
}

func (b *Bar) width() int {
	if width := Of(b.out).Width; width > 0 {
		return width - 1
	}
	return 79
}

// barLine returns a line of at most width characters. A narrow line has no blocks.
func barLine(label string, done, total int, after string, width int) string {
	const longest, shortest = 30, 5
	room := width - text.StringWidth(label+gap+gap+after)
	if room < shortest || total <= 0 {
		return text.Trim(label+gap+after, width)
	}
	length := min(longest, room)
	full := length * min(done, total) / total
	return label + gap + strings.Repeat("█", full) + strings.Repeat("░", length-full) + gap + after
}
