package matrix

import (
	"fmt"
	"io"

	"oversell/lab/experiment"
	"oversell/view/ladder"
	"oversell/view/terminal"
)

// WriteEventLog writes a run's events as its ladder shows them, or figures instead of thousands of events.
func WriteEventLog(w io.Writer, r experiment.Result, screen terminal.Screen, lang string) {
	drawn := ladder.OfRecording(r.Recording).In(lang)
	fmt.Fprintf(w, "%s, %s:\n", r.Name(), r.Hazard)
	if len(r.Figures) > 0 {
		fmt.Fprintln(w)
		writeFigures(w, r.Figures, screen, lang)
	} else if !drawn.Empty() {
		for _, line := range append(drawn.Ladder().Lines(), drawn.Left()) {
			if line != "" {
				fmt.Fprintln(w, screen.Wrap("  "+line, len("  0.000  A: ")))
			}
		}
	}
	fmt.Fprintln(w)
}

func writeFigures(w io.Writer, figures []experiment.Figure, screen terminal.Screen, lang string) {
	t := figuresTable(figures, lang)
	fmt.Fprintln(w, screen.Wrap(t.Caption, 0)+"\n")
	for i := range t.Columns[1:] {
		t.Columns[i+1].Right = true
		if i > 2 { // the maximum, and the length of the freeze
			t.Columns[i+1].Drop = i
		}
	}
	t.Write(w, screen)
}
