package ladder

import (
	"slices"
	"strconv"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
)

// mostTasks is the number of clients that a page has room for.
const mostTasks = 6

// These are the ends of the ids of the rungs with the first violation and the first fault.
const violation, fault = "violation", "fault"

// Recorded is a recording that is ready to be drawn and explained. It gives no verdict: package check
// finds the overlaps.
type Recorded struct {
	strategy string
	lang
	from, to time.Duration
	initial  int // pieces in stock at the start; 0 if it is not known
	tasks    []*task
	left     int // number of tasks without a column
	spans    []history.Span
	overlaps []overlap
	sales    []sale
	taken    []sale // pieces taken from the stock
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

// OfRecording returns one key's recording. Requests are A, B, C in order of first steps.
func OfRecording(rec history.Recording) Recorded {
	t := Recorded{spans: rec.Spans, strategy: strategyOf(rec), initial: rec.Stock}
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
	t.to += time.Millisecond // the last answer has an effect
	return t
}

// In returns the recording with its words in a language: en or zh.
func (t Recorded) In(language string) Recorded {
	t.lang = lang(language)
	return t
}

// InLanguage returns the picture in a language: en or zh.
func (t Recorded) InLanguage(language string) Ladder { return t.In(language).Ladder() }

// Empty reports whether there is nothing to draw.
func (t Recorded) Empty() bool { return len(t.tasks) == 0 && len(t.spans) == 0 }

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
	var times []time.Duration
	for _, e := range rec.Events {
		times = append(times, e.At)
	}
	for i := range rec.Ops {
		times = append(times, rec.Ops[i].Call, rec.Ops[i].Return)
	}
	for _, s := range rec.Spans {
		times = append(times, s.From, s.To)
	}
	if len(times) > 0 {
		from, to = slices.Min(times), slices.Max(times)
	}
	return from, max(to, from+time.Millisecond)
}

func (t Recorded) overlapsOf(rec history.Recording) []overlap {
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

func (t Recorded) task(h *check.Hold) *task {
	for _, task := range t.tasks {
		if task.owner == h.Owner && task.replica == h.Replica {
			return task
		}
	}
	return nil
}

// Jump returns the end of the id of the rung with the first violation, or else with the first fault. It is empty
// if the picture has neither.
func (t Recorded) Jump() string {
	rungs := t.Ladder().Rungs
	for _, anchor := range []string{violation, fault} {
		if slices.ContainsFunc(rungs, func(r Rung) bool { return r.Anchor == anchor }) {
			return anchor
		}
	}
	return ""
}

// since returns the time from the begin of the picture to at, in seconds.
func (t Recorded) since(at time.Duration) string { return seconds(at - t.from) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
