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
	"oversell/lab/load"
	"oversell/lab/report"
)

// screenOf finds out how wide the writer shows a line, and whether it shows colours.
func screenOf(w io.Writer) report.Screen {
	var screen report.Screen
	file, ok := terminal(w)
	if ok {
		screen.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if wide, _, err := term.GetSize(int(file.Fd())); err == nil {
			screen.Width = wide
		}
	}
	// Whoever exports COLUMNS means it, on a terminal or in a file.
	if wide, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && wide > 0 {
		screen.Width = wide
	}
	return screen
}

func terminal(w io.Writer) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// watcher shows a run's progress until it is closed.
type watcher interface {
	comparison.Watcher
	close()
}

func newWatcher(w io.Writer, quiet bool) watcher {
	if quiet {
		return silent{}
	}
	if _, ok := terminal(w); ok && os.Getenv("TERM") != "dumb" {
		return newBars(w)
	}
	return &lines{out: w}
}

type silent struct{}

func (silent) Begin(string, int, int) {}
func (silent) Progress(load.Progress) {}
func (silent) End(report.Result)      {}
func (silent) close()                 {}

// bars draw a bar for each strategy.
type bars struct {
	writer  progress.Writer
	ended   chan struct{}
	current *progress.Tracker
}

func newBars(w io.Writer) *bars {
	b := &bars{writer: progress.NewWriter(), ended: make(chan struct{})}
	b.writer.SetOutputWriter(w)
	b.writer.SetAutoStop(false)
	b.writer.SetTrackerPosition(progress.PositionRight)
	b.writer.SetTrackerLength(30)
	b.writer.SetMessageLength(24)
	b.writer.SetUpdateFrequency(100 * time.Millisecond)
	b.writer.SetStyle(progress.StyleBlocks)
	go func() {
		defer close(b.ended)
		b.writer.Render()
	}()
	return b
}

func (b *bars) Begin(strategy string, nth, of int) {
	b.current = &progress.Tracker{Message: fmt.Sprintf("%s (%d/%d)", strategy, nth, of)}
	b.writer.AppendTracker(b.current)
}

func (b *bars) Progress(p load.Progress) {
	b.current.UpdateTotal(int64(p.Total))
	b.current.SetValue(int64(min(p.Done, p.Total-1))) // the last step is End's
}

func (b *bars) End(r report.Result) {
	if r.Partial {
		b.current.MarkAsErrored()
		return
	}
	b.current.MarkAsDone()
}

func (b *bars) close() {
	if b.current != nil && !b.current.IsDone() {
		b.current.MarkAsErrored()
	}
	b.writer.Stop()
	<-b.ended
}

// lines are for who reads the progress later, in a file: few, and no bars.
type lines struct {
	out   io.Writer
	name  string
	next  time.Time
	pause time.Duration
}

func (l *lines) Begin(strategy string, nth, of int) {
	l.name, l.pause = strategy, 5*time.Second
	l.next = time.Now().Add(l.pause)
	_, _ = fmt.Fprintf(l.out, "%s (%d/%d)\n", strategy, nth, of)
}

func (l *lines) Progress(p load.Progress) {
	if time.Now().Before(l.next) {
		return
	}
	l.pause = min(2*l.pause, time.Minute)
	l.next = time.Now().Add(l.pause)
	_, _ = fmt.Fprintf(l.out, "%s: %d of %d requests, %d sold, %d failed\n", l.name, p.Done, p.Total, p.Sold, p.Failed)
}

func (l *lines) End(report.Result) {}
func (l *lines) close()            {}
