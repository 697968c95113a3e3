package cli

import (
	"fmt"
	"io"
	"time"

	"oversell/lab/experiment"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// runWatcher prints each verdict when its run has ended. In between it draws a bar, or prints lines
// if the output is no terminal. The time between two lines grows.
type runWatcher struct {
	verdict func(measure.Result) // nil prints none
	lines   io.Writer
	bar     *terminal.Bar // nil means lines

	strategy string
	label    string
	next     time.Time // of the next line
	pause    time.Duration
}

func (w *runWatcher) Begin(strategy string, nth, of int) {
	w.strategy, w.label = strategy, fmt.Sprintf("%s (%d/%d)", strategy, nth, of)
	w.pause = 5 * time.Second
	w.next = time.Now().Add(w.pause)
	if w.bar != nil {
		w.bar.Begin(w.label, 0, 1, "")
		return
	}
	_, _ = fmt.Fprintln(w.lines, w.label)
}

func (w *runWatcher) Progress(p load.Progress) {
	if w.bar != nil {
		w.bar.Draw(w.label, p.Done, p.Total, terminal.Number(p.Done)+" of "+terminal.Number(p.Total))
		return
	}
	if time.Now().Before(w.next) {
		return
	}
	w.pause = min(2*w.pause, time.Minute)
	w.next = time.Now().Add(w.pause)
	_, _ = fmt.Fprintf(w.lines, "%s: %d of %d requests, %d sold, %d failed\n", w.strategy, p.Done, p.Total, p.Sold, p.Failed)
}

func (w *runWatcher) End(r measure.Result) {
	w.bar.Clear()
	if w.verdict != nil {
		w.verdict(r)
	}
}

// breakWatcher prints a line for each experiment. In a terminal, a bar below shows the next one.
type breakWatcher struct {
	out     io.Writer
	bar     *terminal.Bar // nil without a terminal
	began   time.Time
	first   int // the store already had the earlier experiments
	nth, of int
}

func newBreakWatcher(w io.Writer) *breakWatcher {
	return &breakWatcher{out: w, bar: terminal.NewBar(w), began: time.Now()}
}

func (b *breakWatcher) Begin(e experiment.Experiment, strategies, nth, of int) {
	if b.nth == 0 {
		b.first = nth
	}
	b.nth, b.of = nth, of
	if b.bar == nil {
		_, _ = fmt.Fprintf(b.out, "%d/%d  %s, %d strategies\n", nth, of, e.Title.EN, strategies)
		return
	}
	b.bar.Begin(fmt.Sprintf("%s on %d (%d/%d)", e.Hazard, strategies, nth, of), nth-1, of, b.remaining(nth-1))
}

func (b *breakWatcher) End(e experiment.Experiment, results []experiment.Result, took time.Duration) {
	failed := 0
	for _, r := range results {
		if r.Verdict.Failed() {
			failed++
		}
	}
	line := fmt.Sprintf("%s: %d of %d failed, %.0f s", e.Hazard, failed, len(results), took.Seconds())
	if left := b.remaining(b.nth); left != "" && b.bar == nil {
		line += ", " + left
	}
	b.end(line)
}

func (b *breakWatcher) LeftOut(e experiment.Experiment, why error) {
	b.end(fmt.Sprintf("%s: left out: %v", e.Hazard, why))
}

func (b *breakWatcher) end(line string) {
	b.bar.Clear()
	const indent = "      "
	_, _ = fmt.Fprintln(b.out, terminal.Of(b.out).Wrap(indent+line, len(indent)))
}

// remaining estimates the time left. It returns "" before the first result and after the last.
func (b *breakWatcher) remaining(done int) string {
	here, left := done-b.first+1, b.of-done
	if here == 0 || left == 0 {
		return ""
	}
	return fmt.Sprintf("about %v left", (time.Since(b.began) / time.Duration(here) * time.Duration(left)).Round(time.Second))
}
