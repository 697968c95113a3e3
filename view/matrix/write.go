package matrix

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/view/report"
	"oversell/view/terminal"
)

// Recorded is the content of a file with a matrix.
type Recorded struct {
	About
	Matrix
}

// WriteJSON writes the matrix, and the conditions that its verdicts depend on: a Recorded.
func (m Matrix) WriteJSON(w io.Writer, about About) error {
	return report.WriteLines(w, Recorded{about, m})
}

// WriteMarkdown writes a table per group of hazards, without empty strategies and hazards.
func (m Matrix) WriteMarkdown(w io.Writer, about About) error {
	out := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(out, "Seeds: %d. %s; %s; %s.\n", m.runs(), about.Date, about.Machine, about.Versions)
	for _, group := range append(experiment.Groups(), others) {
		m.writePart(out, string(group), m.in(group))
	}
	return out.Flush()
}

// others is the title of hazards that this version does not have.
const others experiment.Group = "Other hazards"

// in returns the hazards of a group that have a summary, in the order of the experiments.
func (m Matrix) in(group experiment.Group) (hazards []api.Hazard) {
	known := experiment.Hazards()
	position := func(hazard api.Hazard) int { return slices.Index(known, hazard) }
	for _, hazard := range slices.SortedStableFunc(slices.Values(m.Hazards), func(a, b api.Hazard) int { return position(a) - position(b) }) {
		e, _ := experiment.Of(hazard)
		if cmp.Or(e.Group, others) == group && slices.ContainsFunc(m.Rows, func(r Row) bool { return r.has(hazard) }) {
			hazards = append(hazards, hazard)
		}
	}
	return hazards
}

func (m Matrix) writePart(out io.Writer, title string, hazards []api.Hazard) {
	if len(hazards) == 0 {
		return
	}
	head := []string{""}
	for _, hazard := range hazards {
		head = append(head, string(hazard))
	}
	rows := [][]string{head}
	for _, r := range m.Rows {
		if !slices.ContainsFunc(hazards, r.has) {
			continue
		}
		row := []string{"`" + r.name() + "`"}
		for _, hazard := range hazards {
			row = append(row, r.Summaries[hazard].markdown())
		}
		rows = append(rows, row)
	}
	_, _ = fmt.Fprintf(out, "\n### %s\n\n%s\n", title, terminal.Markdown(text.AlignCenter, rows...))
}

func (r Row) has(hazard api.Hazard) bool {
	_, ok := r.Summaries[hazard]
	return ok
}

// WriteHazards writes a Markdown list of all hazards with their plans.
func WriteHazards(w io.Writer) error {
	out := bufio.NewWriter(w)
	_, _ = fmt.Fprintln(out)
	for _, e := range experiment.All() {
		_, _ = fmt.Fprintf(out, "- `%s`: %s. *%s*\n", e.Hazard, e.Title.EN, e.Shows.EN)
		more := ""
		if len(e.Plans) > 1 {
			more = ", or another one: the seed chooses"
		}
		for _, plan := range e.Plans[:min(1, len(e.Plans))] {
			_, _ = fmt.Fprintf(out, "  - `%s`%s\n", plan, more)
		}
	}
	return out.Flush()
}

// markdown returns the verdict, in bold with a claim, and with a number if only some runs failed. It
// is empty for a summary without runs.
func (s Summary) markdown() string {
	words := s.words("en")
	return map[string]string{"": words, "agrees": "**" + words + "**", "contradicts": "**" + words + " ≠**"}[s.Agreement()]
}
