package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"

	"oversell/lab/comparison"
	"oversell/lab/experiment"
	"oversell/lab/load"
	"oversell/lab/report"
)

func screenOf(w io.Writer) report.Screen {
	var screen report.Screen
	file, ok := terminal(w)
	if ok {
		screen.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			screen.Width = width
		}
	}
	// An exported COLUMNS has precedence over the terminal's width, and also works for a file.
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		screen.Width = width
	}
	return screen
}

func terminal(w io.Writer) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

func showsBars(w io.Writer) bool {
	_, ok := terminal(w)
	return ok && os.Getenv("TERM") != "dumb"
}

type bars struct {
	progress.Writer
	current *progress.Tracker
	ended   chan struct{}
}

func newBars(w io.Writer, change func(progress.Writer)) *bars {
	b := &bars{Writer: progress.NewWriter(), ended: make(chan struct{})}
	b.SetOutputWriter(w)
	b.SetAutoStop(false)
	b.SetTrackerLength(30)
	b.SetUpdateFrequency(100 * time.Millisecond)
	b.SetStyle(progress.StyleBlocks)
	change(b.Writer)
	go func() {
		defer close(b.ended)
		b.Render()
	}()
	return b
}

func (b *bars) begin(t *progress.Tracker) {
	b.current = t
	b.AppendTracker(t)
}

func (b *bars) close() {
	if b.current != nil && !b.current.IsDone() {
		b.current.MarkAsErrored()
	}
	b.Stop()
	<-b.ended
}

type runWatcher interface {
	comparison.Watcher
	close()
}

func newWatcher(w io.Writer, quiet bool) runWatcher {
	if !quiet && showsBars(w) {
		return runBars{newBars(w, func(bars progress.Writer) {
			bars.SetTrackerPosition(progress.PositionRight)
			bars.SetMessageLength(24)
		})}
	}
	if quiet {
		w = io.Discard
	}
	return &runLines{out: w}
}

type runBars struct{ *bars }

func (b runBars) Begin(strategy string, nth, of int) {
	b.begin(&progress.Tracker{Message: fmt.Sprintf("%s (%d/%d)", strategy, nth, of)})
}

func (b runBars) Progress(p load.Progress) {
	b.current.UpdateTotal(int64(p.Total))
	b.current.SetValue(int64(min(p.Done, p.Total-1))) // not yet full: End completes the bar
}

func (b runBars) End(r report.Result) {
	if r.Partial {
		b.current.MarkAsErrored()
		return
	}
	b.current.MarkAsDone()
}

// runLines prints progress lines if the output is no terminal. The time between two lines grows.
type runLines struct {
	out      io.Writer
	strategy string
	next     time.Time
	pause    time.Duration
}

func (l *runLines) Begin(strategy string, nth, of int) {
	l.strategy, l.pause = strategy, 5*time.Second
	l.next = time.Now().Add(l.pause)
	_, _ = fmt.Fprintf(l.out, "%s (%d/%d)\n", strategy, nth, of)
}

func (l *runLines) Progress(p load.Progress) {
	if time.Now().Before(l.next) {
		return
	}
	l.pause = min(2*l.pause, time.Minute)
	l.next = time.Now().Add(l.pause)
	_, _ = fmt.Fprintf(l.out, "%s: %d of %d requests, %d sold, %d failed\n", l.strategy, p.Done, p.Total, p.Sold, p.Failed)
}

func (*runLines) End(report.Result) {}
func (*runLines) close()            {}

// breakWatcher shows results above a progress bar or, if the output is no terminal, prints lines.
type breakWatcher struct {
	out     io.Writer
	bars    *bars // nil means lines
	began   time.Time
	first   int // the store already had the earlier experiments
	nth, of int
}

func newBreakWatcher(w io.Writer) *breakWatcher {
	b := &breakWatcher{out: w, began: time.Now()}
	if showsBars(w) {
		b.bars = newBars(w, func(bars progress.Writer) {
			bars.SetTrackerPosition(progress.PositionLeft)
			bars.Style().Visibility.Value = false
		})
	}
	return b
}

func (b *breakWatcher) Begin(e experiment.Experiment, strategies, nth, of int) {
	if b.nth == 0 {
		b.first = nth
	}
	b.nth, b.of = nth, of
	if b.bars == nil {
		_, _ = fmt.Fprintf(b.out, "%d/%d  %s, %d strategies\n", nth, of, e.Title, strategies)
		return
	}
	if b.bars.current == nil {
		b.bars.begin(&progress.Tracker{Total: int64(of)})
		b.bars.current.SetValue(int64(nth - 1))
	}
	b.bars.current.UpdateMessage(fmt.Sprintf("%d/%d %s on %d%s", nth, of, e.Hazard, strategies, b.remaining(nth-1)))
}

func (b *breakWatcher) End(e experiment.Experiment, results []experiment.Result, took time.Duration) {
	failed := 0
	for _, r := range results {
		if r.Verdict.Failed() {
			failed++
		}
	}
	line := fmt.Sprintf("%s: %d of %d failed, %.0f s", e.Hazard, failed, len(results), took.Seconds())
	if b.bars == nil {
		line += b.remaining(b.nth)
	}
	b.end(line)
}

func (b *breakWatcher) LeftOut(e experiment.Experiment, why error) {
	b.end(fmt.Sprintf("%s: left out: %v", e.Hazard, why))
}

func (b *breakWatcher) end(line string) {
	if b.bars == nil {
		_, _ = fmt.Fprintf(b.out, "      %s\n", line)
		return
	}
	b.bars.Log("%s", line)
	b.bars.current.SetValue(int64(b.nth)) // completes the bar after the last experiment
}

// remaining estimates the time left. It returns "" before the first result and after the last.
func (b *breakWatcher) remaining(done int) string {
	here, left := done-b.first+1, b.of-done
	if here == 0 || left == 0 {
		return ""
	}
	return fmt.Sprintf(", about %v left", (time.Since(b.began) / time.Duration(here) * time.Duration(left)).Round(time.Second))
}

func (b *breakWatcher) close() {
	if b.bars != nil {
		b.bars.close()
	}
}
