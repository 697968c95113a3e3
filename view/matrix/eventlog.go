package matrix

import (
	"fmt"
	"io"

	"oversell/lab/experiment"
	"oversell/view/ladder"
	"oversell/view/terminal"
)

// WriteEventLog writes a run's events as its ladder shows them, or figures instead of thousands of events.
func WriteEventLog(w io.Writer, r experiment.Result, screen terminal.Screen, lang string) error {
	drawn := ladder.OfRecording(r.Recording).In(lang)
	_, _ = fmt.Fprintf(w, "%s, %s:\n", r.Name(), r.Hazard)
	if len(r.Figures) > 0 {
		_, _ = fmt.Fprintln(w)
		if err := writeFigures(w, r.Figures, screen, lang); err != nil {
			return err
		}
	} else if !drawn.Empty() {
		for _, line := range append(drawn.Ladder().Lines(), drawn.Left()) {
			if line != "" {
				_, _ = fmt.Fprintln(w, screen.Wrap("  "+line, len("  0.000  A: ")))
			}
		}
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
