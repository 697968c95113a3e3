// Package timeline draws a recording: a lane for each replica, and a row for each request with its
// waits, holds and writes. It gives no verdict: package check finds the overlaps.
package timeline

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
)

const mostTasks = 12

// Timeline is a recording that is ready to be drawn.
type Timeline struct {
	strategy string
	lang     string
	from, to time.Duration // the part of the recording that the picture shows
	tasks    []*task
	left     int // number of tasks without a row
	spans    []history.Span
	overlaps []overlap
	sales    []sale
	taken    []sale // pieces taken from the row
	bare     bool   // the picture has no legend
	scale    []segment
}

// overlap is a time in which two tasks held the same key.
type overlap struct {
	first, second *task
	from, to      time.Duration
	acted         bool // first wrote although second held the key, which does harm
}

// sale is the total number of pieces sold up to an answer, or taken from the stock up to a write.
type sale struct {
	at     time.Duration
	pieces int
}

// Of returns the timeline of one key's recording. Requests are A, B, C in order of first steps.
func Of(rec history.Recording) Timeline {
	t := Timeline{spans: rec.Spans, strategy: strategyOf(rec)}
	t.from, t.to = extent(rec)
	all := tasksOf(rec, t.to)
	t.tasks = mostTelling(all)
	t.left = len(all) - len(t.tasks)
	t.overlaps = t.overlapsOf(rec)
	t.sales = salesOf(rec.Ops)
	// With requests left out, answers may be matched to wrong writes and show false lost updates.
	if rec.Stock > 0 && t.left == 0 {
		t.taken = takenBy(all, rec.Stock)
	}
	t.findLapses(rec)
	t.scale = scaleOf(t.moments())
	t.to = t.scale[len(t.scale)-1].to
	return t
}

// In returns the timeline with its words in a language: en or zh.
func (t Timeline) In(lang string) Timeline {
	t.lang = lang
	return t
}

// Inline returns the picture for a page with Style in its head. The id must be unique in that page.
func (t Timeline) Inline(id string) (template.HTML, error) {
	var svg strings.Builder
	if err := pictures().Execute(&svg, t.draw(id)); err != nil {
		return "", fmt.Errorf("draw the timeline: %w", err)
	}
	return template.HTML(svg.String()), nil //nolint:gosec // escaped by its own template
}

// WithoutLegend returns the timeline for a page with several pictures and one Legend.
func (t Timeline) WithoutLegend() Timeline {
	t.bare = true
	return t
}

// Legend returns the legend of all pictures on a page in a language, en or zh.
func Legend(lang string) (template.HTML, error) {
	d := drawing{ID: "legend", timeline: Timeline{lang: lang}, Ragged: true, Both: true, Lapsed: true}
	var svg strings.Builder
	if err := pictures().ExecuteTemplate(&svg, "legend", d); err != nil {
		return "", fmt.Errorf("draw the legend: %w", err)
	}
	return template.HTML(svg.String()), nil //nolint:gosec // escaped by its own template
}

// Empty reports whether there is nothing to draw.
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
		// A release is reported shortly after it happened, so a very short overlap may not be real.
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

func (t Timeline) task(h *check.Hold) *task {
	for _, task := range t.tasks {
		if task.owner == h.Owner && task.replica == h.Replica {
			return task
		}
	}
	return nil
}

// Violation returns the first harmful overlap or lost update: its position from the left of the
// picture, such as 43.2%, its time in seconds, and a sentence. If there is none, all are empty.
func (t Timeline) Violation() (place, second, words string) {
	at := t.to + 1
	for _, o := range t.overlaps {
		if o.acted && o.from < at {
			at, words = o.from, t.both(o)
		}
	}
	for _, m := range t.missing() {
		if m.from < at {
			at, words = m.from, t.say("lost update: %d sold, %d taken from stock", "丢失更新：卖出 %d，库存减少 %d", m.sold, m.taken)
		}
	}
	if words == "" {
		return "", "", ""
	}
	return t.at(at), t.since(at), words
}

// Fault returns the first fault of a server, in the form of Violation.
func (t Timeline) Fault() (place, second, words string) {
	if len(t.spans) == 0 {
		return "", "", ""
	}
	s := slices.MinFunc(t.spans, func(a, b history.Span) int { return cmp.Compare(a.From, b.From) })
	return t.at(s.From), t.since(s.From), s.Who + ": " + t.fault(s.What)
}

// since returns the time from the begin of the picture to at, in seconds.
func (t Timeline) since(at time.Duration) string { return seconds(at - t.from) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
