package experiment

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Matrix is what the cells say together: a strategy's row, a hazard's column, over
// all seeds.
type Matrix struct {
	Hazards []string `json:"hazards"`
	Rows    []Row    `json:"rows"`
}

// Row is one strategy, with or without its fence.
type Row struct {
	Strategy string            `json:"strategy"`
	Fenced   bool              `json:"fenced,omitempty"`
	Squares  map[string]Square `json:"squares"` // by hazard
}

// Square is one cell over all seeds.
type Square struct {
	Claim   Claim   `json:"claim,omitempty"`
	Runs    int     `json:"runs"`
	Verdict Verdict `json:"verdict"` // the worst that was seen
	Broke   int     `json:"broke"`   // runs that were violated or stalled
	Unknown int     `json:"unknown,omitempty"`
	Agrees  bool    `json:"agrees"`
	Why     string  `json:"why"` // of the first run with the verdict
	Command string  `json:"command"`
	Seeds   []int64 `json:"seeds"`
}

// Summarise makes the matrix of cells.
func Summarise(cells []Cell) Matrix {
	var m Matrix
	for _, cell := range cells {
		if !slices.Contains(m.Hazards, cell.Hazard) {
			m.Hazards = append(m.Hazards, cell.Hazard)
		}
		i := slices.IndexFunc(m.Rows, func(r Row) bool { return r.Strategy == cell.Strategy && r.Fenced == cell.Fenced })
		if i < 0 {
			i = len(m.Rows)
			m.Rows = append(m.Rows, Row{cell.Strategy, cell.Fenced, map[string]Square{}})
		}
		m.Rows[i].Squares[cell.Hazard] = m.Rows[i].Squares[cell.Hazard].with(cell)
	}
	return m
}

// with adds one run.
func (s Square) with(cell Cell) Square {
	first := s.Runs == 0
	s.Claim, s.Command = cell.Claim, cell.Command()
	s.Runs++
	s.Seeds = append(s.Seeds, cell.Seed)
	if cell.Verdict.Broke() {
		s.Broke++
	}
	if cell.Verdict == Unknown {
		s.Unknown++
	}
	if first || worse(cell.Verdict, s.Verdict) {
		s.Verdict, s.Why = cell.Verdict, cell.Why
	}
	// One run in twenty may fail to show a flaw; what is protected must survive all.
	s.Agrees = s.Claim == Silent || s.Claim == Protects && s.Broke == 0 || s.Claim == Breaks && s.Broke*20 >= s.Runs*19
	if s.Claim == Breaks && s.Broke == 0 {
		s.Verdict = NotShown
	}
	return s
}

func worse(a, b Verdict) bool {
	order := []Verdict{Safe, NotShown, Unknown, Wasteful, Aborted, Stalled, Violated}
	return slices.Index(order, a) > slices.Index(order, b)
}

// MySQLVersions returns the versions of MySQL and MariaDB that the cells ran on, in one line:
// that of most hazards, and in brackets the others with their hazards. Without any it is empty.
func MySQLVersions(cells []Cell) string {
	hazards := map[string][]string{} // by version
	var versions []string
	for _, cell := range cells {
		if cell.MySQL == "" || slices.Contains(hazards[cell.MySQL], cell.Hazard) {
			continue
		}
		if hazards[cell.MySQL] == nil {
			versions = append(versions, cell.MySQL)
		}
		hazards[cell.MySQL] = append(hazards[cell.MySQL], cell.Hazard)
	}
	slices.SortStableFunc(versions, func(a, b string) int { return len(hazards[b]) - len(hazards[a]) })
	if len(versions) < 2 {
		return strings.Join(versions, "")
	}
	others := make([]string, 0, len(versions))
	for _, version := range versions[1:] {
		others = append(others, strings.Join(hazards[version], ", ")+": "+version)
	}
	return versions[0] + " (" + strings.Join(others, "; ") + ")"
}

// Contradictions are the squares that disagree with their card.
func (m Matrix) Contradictions() (lines []string) {
	m.each(func(r Row, hazard string, s Square) {
		if !s.Agrees {
			lines = append(lines, fmt.Sprintf("%s, %s: the card says %q, %d of %d runs broke: %s", r.name(), hazard, s.Claim, s.Broke, s.Runs, s.Why))
		}
	})
	return lines
}

// Unknowns are the squares with a claim that some run neither showed nor refuted.
func (m Matrix) Unknowns() (lines []string) {
	m.each(func(r Row, hazard string, s Square) {
		if s.Unknown > 0 && s.Claim != Silent {
			lines = append(lines, fmt.Sprintf("%s, %s: %d of %d runs said nothing: %s", r.name(), hazard, s.Unknown, s.Runs, s.Why))
		}
	})
	return lines
}

func (m Matrix) each(do func(r Row, hazard string, s Square)) {
	for _, r := range m.Rows {
		for _, hazard := range m.Hazards {
			if s, ok := r.Squares[hazard]; ok {
				do(r, hazard, s)
			}
		}
	}
}

func (r Row) name() string {
	if r.Fenced {
		return r.Strategy + " --fenced"
	}
	return r.Strategy
}

// Print writes the matrix as a table. A mark stands behind what a card claims: = where
// the run agrees, ! where it does not.
func (m Matrix) Print(w io.Writer) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	head := table.Row{"strategy"}
	for _, hazard := range m.Hazards {
		head = append(head, strings.ReplaceAll(hazard, "-", "-\n"))
	}
	t.AppendHeader(head)
	for _, r := range m.Rows {
		row := table.Row{r.name()}
		for _, hazard := range m.Hazards {
			s, ok := r.Squares[hazard]
			row = append(row, mark(s, ok))
		}
		t.AppendRow(row)
	}
	t.Render()
}

func mark(s Square, ok bool) string {
	if !ok {
		return ""
	}
	text := map[Verdict]string{Safe: "safe", Stalled: "STALLED", Aborted: "ABORTED", Wasteful: "WASTEFUL", Violated: "BROKEN", NotShown: "not shown", Unknown: "?"}[s.Verdict]
	switch {
	case s.Claim == Silent:
		return text
	case s.Agrees:
		return text + " ="
	default:
		return text + " !"
	}
}
