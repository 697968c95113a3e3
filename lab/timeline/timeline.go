// Package timeline draws what a recording shows: a lane for each replica, in it a row
// for each request, and on the row who waited, who held the lock, and when it wrote.
// It decides nothing. What it marks as two holders is what package check found.
package timeline

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
)

// mostTasks bounds the rows of a picture. A crowd of waiters looks the same from the
// twelfth on.
const mostTasks = 12

// Timeline is a recording, made ready to be drawn.
type Timeline struct {
	strategy string
	lang     string
	from, to time.Duration // what the picture shows of the recording
	tasks    []*task
	left     int // tasks that there is no room for
	spans    []history.Span
	overlaps []overlap
	sales    []sale
	taken    []sale // from the row
}

// overlap is when two held the same key.
type overlap struct {
	first, second *task
	from, to      time.Duration
	acted         bool // first wrote although second held: the overlap that does harm
}

// sale is how many pieces were sold once that answer had come, or were gone from the shelf
// once that was written.
type sale struct {
	at     time.Duration
	pieces int
}

// Of reads a recording of one key. Requests are named A, B, C by their first steps.
func Of(rec history.Recording) Timeline {
	t := Timeline{spans: rec.Spans, strategy: strategyOf(rec)}
	t.from, t.to = extent(rec)
	all := tasksOf(rec, t.to)
	t.tasks = mostTelling(all)
	t.left = len(all) - len(t.tasks)
	t.overlaps = t.overlapsOf(rec)
	t.sales = salesOf(rec.Ops)
	// In a crowd, whose answer it was that a writer got is a guess: it would show sales
	// that seem to leave no trace.
	if rec.Stock > 0 && t.left == 0 {
		t.taken = takenBy(all, rec.Stock)
		t.to += (t.to - t.from) / 20 // room for what the last answer made of it
	}
	return t
}

// In is the same with its words in a language: en or zh.
func (t Timeline) In(lang string) Timeline {
	t.lang = lang
	return t
}

// SVG writes the recording as a picture that stands alone.
func SVG(rec history.Recording, w io.Writer) error {
	d := Of(rec).draw("timeline")
	d.Style = Style()
	return d.write(w)
}

// Inline is the picture for a page that has Style in its head. The id must be the only
// one of its name on the page.
func (t Timeline) Inline(id string) (template.HTML, error) {
	var svg strings.Builder
	if err := t.draw(id).write(&svg); err != nil {
		return "", err
	}
	return template.HTML(svg.String()), nil //nolint:gosec // escaped by its own template
}

// Empty says that there is nothing to draw.
func (t Timeline) Empty() bool { return len(t.tasks) == 0 && len(t.spans) == 0 }

func strategyOf(rec history.Recording) string {
	switch {
	case len(rec.Events) > 0:
		return rec.Events[0].Strategy
	case len(rec.Ops) > 0:
		return rec.Ops[0].Strategy
	}
	return "nothing"
}

// extent is when the first thing in the recording began and the last one ended.
func extent(rec history.Recording) (from, to time.Duration) {
	first := true
	see := func(begin, end time.Duration) {
		if first {
			from, first = begin, false
		}
		from, to = min(from, begin), max(to, end)
	}
	for _, e := range rec.Events {
		see(e.At, e.At)
	}
	for i := range rec.Ops {
		see(rec.Ops[i].Call, rec.Ops[i].Return)
	}
	for _, s := range rec.Spans {
		see(s.From, s.To)
	}
	return from, max(to, from+time.Millisecond)
}

func (t Timeline) overlapsOf(rec history.Recording) []overlap {
	var all []overlap
	for _, o := range check.Exclusion(rec).Overlaps {
		// The news of a release comes a moment after the release.
		if !o.Acted && o.To == o.First.To && o.To-o.From < (t.to-t.from)/200 {
			continue
		}
		first, second := t.task(o.First), t.task(o.Second)
		if first != nil && second != nil {
			all = append(all, overlap{first, second, o.From, o.To, o.Acted})
		}
	}
	return all
}

func (t Timeline) task(h check.Hold) *task {
	for _, task := range t.tasks {
		if task.owner == h.Owner && task.replica == h.Replica {
			return task
		}
	}
	return nil
}

// Violation is the first moment at which two held the lock and did harm, or more was sold
// than was gone from the shelf: its place from the left of the picture, such as 43.2%, its
// second, and its words. None: all three are empty.
func (t Timeline) Violation() (place, second, words string) {
	at := t.to + 1
	for _, o := range t.overlaps {
		if o.acted && o.from < at {
			at, words = o.from, t.both(o)
		}
	}
	for _, m := range t.missing() {
		if m.from < at {
			at, words = m.from, t.say("%d sold, and %d gone from the shelf", "卖出 %d，货架上减少 %d", m.sold, m.taken)
		}
	}
	if words == "" {
		return "", "", ""
	}
	return t.at(at), t.since(at), words
}

// Fault is the first moment at which something was done to a server, told like a Violation.
func (t Timeline) Fault() (place, second, words string) {
	if len(t.spans) == 0 {
		return "", "", ""
	}
	s := slices.MinFunc(t.spans, func(a, b history.Span) int { return cmp.Compare(a.From, b.From) })
	return t.at(s.From), t.since(s.From), s.Who + ": " + t.word(s.What)
}

// since is a moment on the picture's clock, in seconds.
func (t Timeline) since(at time.Duration) string {
	return fmt.Sprintf("%.3f", (at - t.from).Seconds())
}
