package matrix

import (
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/view/ladder"
	"oversell/view/terminal"
)

// Print writes the verdicts for a terminal: a line for each strategy if there is only one hazard,
// and otherwise tables, as many as the screen's width requires.
func (m Matrix) Print(w io.Writer, screen terminal.Screen, lang string) {
	if len(m.Hazards) == 1 {
		m.printLines(w, screen, lang)
	} else {
		m.printTables(w, screen, lang)
	}
}

func (m Matrix) printLines(w io.Writer, screen terminal.Screen, lang string) {
	hazard, names := m.Hazards[0], 0
	for _, r := range m.Rows {
		names = max(names, len(r.name()))
	}
	for _, r := range m.Rows {
		s := r.Summaries[hazard]
		word := s.words(lang) + s.comparison().In(lang)
		if why := s.Why.In(lang); why != "" {
			word += api.Text{EN: ": ", ZH: "："}.In(lang) + why
		}
		line := fmt.Sprintf("%s %-*s  %s", s.Verdict.Sign(), names, r.name(), word)
		fmt.Fprintln(w, screen.Paint(s.Verdict.Sign(), screen.Wrap(line, names+len("s   "))))
	}
}

// comparison compares the verdict with the card, as the end of a sentence. It may be empty.
func (s Summary) comparison() api.Text {
	return map[string]api.Text{
		"agrees": {EN: ", as its card claims", ZH: "，与卡片一致"}, "contradicts": {EN: ", but its card claims otherwise", ZH: "，与卡片不符"},
	}[s.Agreement()]
}

func (m Matrix) printTables(w io.Writer, screen terminal.Screen, lang string) {
	for _, t := range m.table().Split(screen) {
		t.Write(w, screen)
		fmt.Fprintln(w)
	}
	legend := api.Text{
		EN: "✓ safe   ✗ broken or stalled   ▲ correct, but at a cost   ? inconclusive   = as its card claims   ≠ its card claims otherwise",
		ZH: "✓ 安全   ✗ 被破坏或停滞   ▲ 正确，但有代价   ? 无法判定   = 与卡片一致   ≠ 与卡片不符",
	}
	fmt.Fprintln(w, screen.Wrap(legend.In(lang), 0))
}

func (m Matrix) table() terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{{Head: "strategy"}}}
	for _, hazard := range m.Hazards {
		t.Columns = append(t.Columns, terminal.Column{Head: strings.ReplaceAll(string(hazard), "-", "-\n")})
	}
	for _, r := range m.Rows {
		row := []terminal.Cell{{Text: r.name()}}
		for _, hazard := range m.Hazards {
			s, ok := r.Summaries[hazard]
			row = append(row, s.cell(ok))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// cell returns the verdict, = if the card claims the same, and ≠ if it claims otherwise.
func (s Summary) cell(ok bool) terminal.Cell {
	if !ok {
		return terminal.Cell{}
	}
	sign := s.Verdict.Sign()
	return terminal.Cell{Sign: sign, Text: sign + " " + string(s.Verdict) + map[string]string{"agrees": " =", "contradicts": " ≠"}[s.Agreement()]}
}

// WriteEventLog writes a run's events as its ladder shows them.
func WriteEventLog(w io.Writer, r experiment.Result, screen terminal.Screen, lang string) {
	drawn := ladder.OfRecording(r.Recording).In(lang)
	fmt.Fprintf(w, "%s, %s:\n", r.Name(), r.Hazard)
	if !drawn.Empty() {
		for _, line := range append(drawn.Ladder().Lines(), drawn.Left()) {
			if line != "" {
				fmt.Fprintln(w, screen.Wrap("  "+line, len("  0.000  A: ")))
			}
		}
	}
	fmt.Fprintln(w)
}
