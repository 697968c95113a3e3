package experiment

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Story tells what happened, line by line, for a class at a terminal: each moment, or
// where thousands look the same, the figures.
func (c Cell) Story(w io.Writer) {
	if len(c.Figures) > 0 {
		c.figures(w)
	} else {
		c.moments(w)
	}
	subject := Subject{Card: Card{ID: c.Strategy}, Fenced: c.Fenced}
	_, _ = fmt.Fprintf(w, "%s, %s: %s", subject.Name(), c.Hazard, c.Verdict)
	if c.Invariant != "" {
		_, _ = fmt.Fprintf(w, " (%s)", c.Invariant)
	}
	_, _ = fmt.Fprintf(w, ": %s\n\n", c.Why)
}

func (c Cell) moments(w io.Writer) {
	type moment struct {
		at   time.Duration
		text string
	}
	var all []moment
	names := map[string]string{}
	for _, e := range c.Recording.Events {
		if names[e.Owner] == "" {
			names[e.Owner] = string(rune('A' + len(names)%26))
		}
		text := fmt.Sprintf("%-10s %s %s", e.Replica, names[e.Owner], e.Step)
		if e.Fence > 0 && e.Step == "granted" {
			text += fmt.Sprintf(" (fence %d)", e.Fence)
		}
		all = append(all, moment{e.At, text})
	}
	for _, s := range c.Recording.Spans {
		all = append(all, moment{s.From, fmt.Sprintf("%-10s ! %s", s.Who, s.What)}, moment{s.To, fmt.Sprintf("%-10s ! over", s.Who)})
	}
	for i := range c.Recording.Ops {
		op := &c.Recording.Ops[i]
		text := fmt.Sprintf("%-10s   answers: %s", op.Replica, answer(*op))
		if op.HasRemaining {
			text += fmt.Sprintf(", %d left", op.Remaining)
		}
		all = append(all, moment{op.Return, text})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	const enough = 60
	for i, m := range all {
		if i == enough {
			_, _ = fmt.Fprintf(w, "  … and %d more\n", len(all)-enough)
			break
		}
		_, _ = fmt.Fprintf(w, "  %7.3f s  %s\n", (m.at - all[0].at).Seconds(), m.text)
	}
}
