package matrix

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/lab/experiment"
)

// WriteEventLog writes the run event by event, and its verdict. Where thousands of
// requests look the same, it writes the measured response times instead.
func WriteEventLog(w io.Writer, r experiment.Result) {
	if len(r.Figures) > 0 {
		writeFigures(w, r.Figures)
	} else {
		writeEvents(w, r)
	}
	_, _ = fmt.Fprintf(w, "%s, %s: %s", r.Name(), r.Hazard, r.Verdict)
	if r.Invariant != "" {
		_, _ = fmt.Fprintf(w, " (%s)", r.Invariant)
	}
	_, _ = fmt.Fprintf(w, ": %s\n\n", r.Why)
}

func writeFigures(w io.Writer, figures []experiment.Figure) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"ms", "requests", "median", "99%", "maximum", "frozen for"})
	for _, f := range figures {
		t.AppendRow(table.Row{f.Loop, f.Samples, fmt.Sprintf("%.1f", f.P50), fmt.Sprintf("%.1f", f.P99), fmt.Sprintf("%.1f", f.Max), f.FrozenMS})
	}
	t.Render()
}

// event is one line of the log.
type event struct {
	at   time.Duration
	text string
}

func writeEvents(w io.Writer, r experiment.Result) {
	all := eventsOf(r)
	const most = 60
	for i, e := range all {
		if i == most {
			_, _ = fmt.Fprintf(w, "  … and %d more\n", len(all)-most)
			break
		}
		_, _ = fmt.Fprintf(w, "  %7.3f s  %s\n", (e.at - all[0].at).Seconds(), e.text)
	}
}

// eventsOf returns the steps, faults and answers of the recording, in the order of time.
func eventsOf(r experiment.Result) (all []event) {
	names := map[string]string{}
	for _, e := range r.Recording.Events {
		if names[e.Owner] == "" {
			names[e.Owner] = string(rune('A' + len(names)%26))
		}
		line := fmt.Sprintf("%-10s %s %s", e.Replica, names[e.Owner], e.Step)
		if e.Fence > 0 && e.Step == "granted" {
			line += fmt.Sprintf(" (fence %d)", e.Fence)
		}
		all = append(all, event{e.At, line})
	}
	for _, s := range r.Recording.Spans {
		all = append(all, event{s.From, fmt.Sprintf("%-10s ! %s", s.Who, s.What)}, event{s.To, fmt.Sprintf("%-10s ! over", s.Who)})
	}
	for i := range r.Recording.Ops {
		op := &r.Recording.Ops[i]
		line := fmt.Sprintf("%-10s   answers: %s", op.Replica, experiment.Answer(*op))
		if op.HasRemaining {
			line += fmt.Sprintf(", %d left", op.Remaining)
		}
		all = append(all, event{op.Return, line})
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}
