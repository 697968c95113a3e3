package matrix

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"oversell/lab/experiment"
	"oversell/lab/history"
	"oversell/view/terminal"
)

// WriteEventLog writes a run's events, or figures instead of thousands of events.
func WriteEventLog(w io.Writer, r experiment.Result, screen terminal.Screen, lang string) error {
	events, owners := eventsOf(r)
	roles := ""
	locked := slices.ContainsFunc(r.Recording.Events, func(e history.Event) bool { return e.Step == "granted" })
	if owners == 2 && locked {
		roles = " (A is the holder, B the contender)"
	}
	_, _ = fmt.Fprintf(w, "%s, %s%s:\n", r.Name(), r.Hazard, roles)
	switch {
	case len(r.Figures) > 0:
		_, _ = fmt.Fprintln(w)
		if err := writeFigures(w, r.Figures, screen, lang); err != nil {
			return err
		}
	case owners > letters:
		_, _ = fmt.Fprintln(w, screen.Wrap(fmt.Sprintf("  %d requests, too many to list here. With --html FILE, a page shows their timeline.", owners), 2))
	default:
		writeEvents(w, events, screen)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("write the event log: %w", err)
	}
	return nil
}

func writeFigures(w io.Writer, figures []experiment.Figure, screen terminal.Screen, lang string) error {
	t := figuresTable(figures, lang)
	_, _ = fmt.Fprintln(w, screen.Wrap(t.Caption, 0)+"\n")
	for i := range t.Columns[1:] {
		t.Columns[i+1].Right = true
		if i > 2 { // the maximum, and the length of the freeze
			t.Columns[i+1].Drop = i
		}
	}
	return t.Write(w, screen)
}

type event struct {
	at   time.Duration
	text string
}

// letters is the number of requests that can have a letter as their name.
const letters = 26

func writeEvents(w io.Writer, all []event, screen terminal.Screen) {
	const most = 60
	for i, e := range all {
		if i == most {
			_, _ = fmt.Fprintf(w, "  … and %d more\n", len(all)-most)
			break
		}
		line := fmt.Sprintf("  %7.3f s  %s", (e.at - all[0].at).Seconds(), e.text)
		_, _ = fmt.Fprintln(w, screen.Wrap(line, 26))
	}
}

// faultWords returns the words for the beginning and the end of a fault. A deletion has no end.
func faultWords(what string) (begin, end string) {
	switch what {
	case "stop", "stopped":
		return "process frozen", "process resumed"
	case "kill", "killed":
		return "process killed", "process started again"
	case "locks deleted", "session expired":
		return what, ""
	}
	return what, "end of: " + what
}

// eventsOf returns the events of a run in their order, and the number of its requests.
func eventsOf(r experiment.Result) (all []event, owners int) {
	names := map[string]string{}
	add := func(at time.Duration, server, format string, values ...any) {
		all = append(all, event{at, fmt.Sprintf("%-10s ", server) + fmt.Sprintf(format, values...)})
	}
	for _, e := range r.Recording.Events {
		if names[e.Owner] == "" {
			names[e.Owner] = string(rune('A' + len(names)%letters))
		}
		fence := ""
		if e.Fence > 0 && e.Step == "granted" {
			fence = fmt.Sprintf(" (fence %d)", e.Fence)
		}
		add(e.At, e.Replica, "%s %s%s", names[e.Owner], e.Step, fence)
	}
	for _, s := range r.Recording.Spans {
		begin, end := faultWords(s.What)
		add(s.From, s.Who, "! %s", begin)
		if end != "" {
			add(s.To, s.Who, "! %s", end)
		}
	}
	for i := range r.Recording.Ops {
		op := &r.Recording.Ops[i]
		left := ""
		if op.HasRemaining {
			left = fmt.Sprintf(", %d left", op.Remaining)
		}
		answers := "answers"
		if !op.Answered() {
			answers = "has no answer"
		}
		add(op.Return, op.Replica, "  %s: %s%s", answers, experiment.Answer(*op).EN, left)
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all, len(names)
}
