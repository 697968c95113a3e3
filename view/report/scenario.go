package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"oversell/lab/scenario"
	"oversell/view/terminal"
)

// Scenario writes the sentence of a scenario's result behind the sign of its verdict.
func Scenario(w io.Writer, r scenario.Result, screen terminal.Screen, lang string) {
	sign := r.Verdict().Sign()
	fmt.Fprintln(w, screen.Paint(sign, screen.Wrap(sign+" "+r.Sentence.In(lang), len("s "))))
}

// Guards writes a line per guard: its claim, the runs, the broken runs, and each figure's median.
func Guards(w io.Writer, results []scenario.Result, screen terminal.Screen) {
	var guards, figures []string
	for _, r := range results {
		if !slices.Contains(guards, r.Guard) {
			guards = append(guards, r.Guard)
		}
		figures = slices.AppendSeq(figures, maps.Keys(r.Figures))
	}
	slices.Sort(figures)
	figures = slices.Compact(figures)
	t := terminal.Texts("", slices.Concat([]string{"guard", "claims", "runs", "broke"}, figures)...)
	t.Frame = true
	for i := range t.Columns {
		t.Columns[i].Right, t.Columns[i].Drop = i > 1, max(0, i-3)
	}
	for _, guard := range guards {
		t.Add(guardRow(guard, results, figures)...)
	}
	t.Write(w, screen)
}

func guardRow(guard string, results []scenario.Result, figures []string) []string {
	runs, broke, claims, values := 0, 0, "breaks", map[string][]float64{}
	for _, r := range results {
		if r.Guard != guard {
			continue
		}
		runs++
		if !r.Holds() {
			broke++
		}
		if r.Safe {
			claims = "safe"
		}
		for name, value := range r.Figures {
			values[name] = append(values[name], value)
		}
	}
	row := []string{guard, claims, strconv.Itoa(runs), strconv.Itoa(broke)}
	for _, name := range figures {
		row = append(row, median(values[name]))
	}
	return row
}

// median returns the median, or "" without values. Of two middle values it returns the lower one.
func median(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	middle, digits := values[(len(values)-1)/2], 1
	if middle >= 100 || middle == float64(int(middle)) {
		digits = 0
	}
	return strconv.FormatFloat(middle, 'f', digits, 64)
}
