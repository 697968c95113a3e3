package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"oversell/lab/experiment"
)

// breakWatcher shows the progress of the experiments until it is closed.
type breakWatcher interface {
	experiment.Watcher
	close()
}

func newBreakWatcher(w io.Writer) breakWatcher {
	if _, ok := terminal(w); ok && os.Getenv("TERM") != "dumb" {
		return newBreakBar(w)
	}
	return &breakLines{out: w, estimate: estimate{began: time.Now()}}
}

// estimate estimates the remaining time.
type estimate struct {
	began   time.Time
	first   int // the experiments before it were stored by an earlier program
	nth, of int
}

func (e *estimate) begin(nth, of int) {
	if e.nth == 0 {
		e.first = nth
	}
	e.nth, e.of = nth, of
}

// rest returns the remaining time after a number of experiments. Before the end of the first
// it is empty.
func (e *estimate) rest(over int) string {
	mine, left := over-e.first+1, e.of-over
	if mine == 0 || left == 0 {
		return ""
	}
	return fmt.Sprintf(", about %v to go", (time.Since(e.began) / time.Duration(mine) * time.Duration(left)).Round(time.Second))
}

// shown returns the result of an experiment in one line.
func shown(hazard string, results []experiment.Result, took time.Duration) string {
	failed := 0
	for _, c := range results {
		if c.Verdict.Failed() {
			failed++
		}
	}
	return fmt.Sprintf("%s: %d of %d failed, %.0f s", hazard, failed, len(results), took.Seconds())
}

// breakLines writes the progress line by line, for a file.
type breakLines struct {
	estimate
	out io.Writer
}

func (b *breakLines) Begin(e experiment.Experiment, subjects, nth, of int) {
	b.begin(nth, of)
	_, _ = fmt.Fprintf(b.out, "%d/%d  %s, %d strategies\n", nth, of, e.Title, subjects)
}

func (b *breakLines) End(e experiment.Experiment, results []experiment.Result, took time.Duration) {
	_, _ = fmt.Fprintf(b.out, "      %s%s\n", shown(e.Hazard, results, took), b.rest(b.nth))
}

func (b *breakLines) LeftOut(_ experiment.Experiment, why error) {
	_, _ = fmt.Fprintf(b.out, "      left out: %v\n", why)
}

func (*breakLines) close() {}

// breakBar shows one bar for all experiments, and above it the results so far.
type breakBar struct {
	estimate
	writer progress.Writer
	bar    *progress.Tracker
	ended  chan struct{}
}

func newBreakBar(w io.Writer) *breakBar {
	b := &breakBar{estimate: estimate{began: time.Now()}, writer: progress.NewWriter(), ended: make(chan struct{})}
	b.writer.SetOutputWriter(w)
	b.writer.SetAutoStop(false)
	b.writer.SetTrackerPosition(progress.PositionLeft)
	b.writer.SetTrackerLength(30)
	b.writer.SetUpdateFrequency(200 * time.Millisecond)
	b.writer.SetStyle(progress.StyleBlocks)
	b.writer.Style().Visibility.Value = false
	go func() {
		defer close(b.ended)
		b.writer.Render()
	}()
	return b
}

func (b *breakBar) Begin(e experiment.Experiment, subjects, nth, of int) {
	b.begin(nth, of)
	if b.bar == nil {
		b.bar = &progress.Tracker{Total: int64(of)}
		b.writer.AppendTracker(b.bar)
		b.bar.SetValue(int64(nth - 1))
	}
	b.bar.UpdateMessage(fmt.Sprintf("%d/%d %s on %d%s", nth, of, e.Hazard, subjects, b.rest(nth-1)))
}

func (b *breakBar) End(e experiment.Experiment, results []experiment.Result, took time.Duration) {
	b.over(shown(e.Hazard, results, took))
}

func (b *breakBar) LeftOut(e experiment.Experiment, why error) {
	b.over(fmt.Sprintf("%s: left out: %v", e.Hazard, why))
}

func (b *breakBar) over(line string) {
	b.writer.Log("%s", line)
	if b.nth == b.of {
		b.bar.MarkAsDone()
		return
	}
	b.bar.SetValue(int64(b.nth))
}

func (b *breakBar) close() {
	if b.bar != nil && !b.bar.IsDone() {
		b.bar.MarkAsErrored()
	}
	b.writer.Stop()
	<-b.ended
}
