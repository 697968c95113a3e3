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

// WriteEventLog writes a run's verdict and events, or figures instead of thousands of events.
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
	_, _ = fmt.Fprintf(w, ": %s\n\n", r.Why.EN)
}

func writeFigures(w io.Writer, figures []experiment.Figure) {
	from := figuresTable(figures, "en")
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SetTitle(from.Caption)
	t.AppendHeader(tableRow(from.Head))
	for _, row := range from.Rows {
		t.AppendRow(tableRow(row))
	}
	t.Render()
}

func tableRow(cells []string) (row table.Row) {
	for _, c := range cells {
		row = append(row, c)
	}
	return row
}

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

func eventsOf(r experiment.Result) (all []event) {
	names := map[string]string{}
	add := func(at time.Duration, server, format string, values ...any) {
		all = append(all, event{at, fmt.Sprintf("%-10s ", server) + fmt.Sprintf(format, values...)})
	}
	for _, e := range r.Recording.Events {
		if names[e.Owner] == "" {
			names[e.Owner] = string(rune('A' + len(names)%26))
		}
		fence := ""
		if e.Fence > 0 && e.Step == "granted" {
			fence = fmt.Sprintf(" (fence %d)", e.Fence)
		}
		add(e.At, e.Replica, "%s %s%s", names[e.Owner], e.Step, fence)
	}
	for _, s := range r.Recording.Spans {
		add(s.From, s.Who, "! %s", s.What)
		add(s.To, s.Who, "! end of: %s", s.What)
	}
	for i := range r.Recording.Ops {
		op := &r.Recording.Ops[i]
		left := ""
		if op.HasRemaining {
			left = fmt.Sprintf(", %d left", op.Remaining)
		}
		add(op.Return, op.Replica, "  answers: %s%s", experiment.Answer(*op), left)
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}
