package matrix

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"oversell/lab/experiment"
)

// WriteJSON writes the matrix and what its verdicts depend on.
func (m Matrix) WriteJSON(w io.Writer, about About) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	err := out.Encode(struct {
		Date     string `json:"date"`
		Machine  string `json:"machine"`
		Versions string `json:"versions"`
		Matrix
	}{about.Date, about.Machine, about.Versions, m})
	if err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

// WriteMarkdown writes the matrix as a table for a README. An empty place means that the
// hazard does not apply to the strategy, or was not run.
func (m Matrix) WriteMarkdown(w io.Writer, about About) error {
	out := bufio.NewWriter(w)
	runs := 0
	m.each(func(_ Row, _ string, s Summary) { runs = max(runs, s.Runs) })
	_, _ = fmt.Fprintf(out, "Seeds: %d. %s; %s; %s.\n\n", runs, about.Date, about.Machine, about.Versions)
	_, _ = fmt.Fprintf(out, "| | %s |\n|---|%s\n", strings.Join(m.Hazards, " | "), strings.Repeat(":-:|", len(m.Hazards)))
	for _, r := range m.Rows {
		_, _ = fmt.Fprintf(out, "| `%s` |", r.name())
		for _, hazard := range m.Hazards {
			s, ok := r.Summaries[hazard]
			_, _ = fmt.Fprintf(out, " %s |", s.markdown(ok))
		}
		_, _ = fmt.Fprintln(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

// markdown returns the verdict, in bold where the card makes a claim. Where only some
// runs failed, it adds their number.
func (s Summary) markdown(ok bool) string {
	if !ok {
		return ""
	}
	text := string(s.Verdict)
	if s.Verdict.Failed() && s.Failed < s.Runs {
		text += fmt.Sprintf(" %d/%d", s.Failed, s.Runs)
	}
	switch {
	case s.Claim == experiment.Silent:
		return text
	case s.Agrees:
		return "**" + text + "**"
	default:
		return "**" + text + " (!)**"
	}
}
