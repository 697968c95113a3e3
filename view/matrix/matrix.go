// Package matrix presents the results of experiments: a table of all strategies and
// hazards for a terminal, a README or a program, and a page with a timeline of each run.
package matrix

import (
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
)

// Matrix holds the summaries of all results: a row for each strategy, a column for each hazard.
type Matrix struct {
	Hazards []api.Hazard `json:"hazards"`
	Rows    []Row        `json:"rows"`
}

// Row holds the summaries of one strategy, with or without its fence.
type Row struct {
	Strategy  string                 `json:"strategy"`
	Fenced    bool                   `json:"fenced,omitempty"`
	Summaries map[api.Hazard]Summary `json:"summaries"` // by hazard
}

// Summary holds the runs of one hazard on one strategy, over all seeds.
type Summary struct {
	Claim        api.Claim   `json:"claim,omitempty"`
	Runs         int         `json:"runs"`
	Verdict      api.Verdict `json:"verdict"`                // the worst of all runs
	Failed       int         `json:"failed"`                 // runs in which the hazard did harm
	Inconclusive int         `json:"inconclusive,omitempty"` // number of runs
	Agrees       bool        `json:"agrees"`                 // no contradiction
	Why          api.Text    `json:"why,omitzero"`           // of the first run with the verdict
	Command      string      `json:"command,omitempty"`
	Seeds        []int64     `json:"seeds,omitempty"`
}

// Summarise makes the matrix of the results.
func Summarise(results []experiment.Result) (m Matrix) {
	for _, r := range results {
		of := m.row(r.Hazard, r.Strategy, r.Fenced)
		of[r.Hazard] = of[r.Hazard].with(r)
	}
	return m
}

// row returns the summaries of a strategy. It adds a missing row or column of the hazard to m.
func (m *Matrix) row(hazard api.Hazard, strategy string, fenced bool) map[api.Hazard]Summary {
	if !slices.Contains(m.Hazards, hazard) {
		m.Hazards = append(m.Hazards, hazard)
	}
	i := slices.IndexFunc(m.Rows, func(r Row) bool { return r.Strategy == strategy && r.Fenced == fenced })
	if i < 0 {
		i = len(m.Rows)
		m.Rows = append(m.Rows, Row{strategy, fenced, map[api.Hazard]Summary{}})
	}
	return m.Rows[i].Summaries
}

// Record copies each summary of newer into m, over that of the same strategy, fence and hazard.
func (m *Matrix) Record(newer Matrix) {
	newer.each(func(r Row, hazard api.Hazard, s Summary) { m.row(hazard, r.Strategy, r.Fenced)[hazard] = s })
}

func (s Summary) with(result experiment.Result) Summary {
	first := s.Runs == 0
	s.Claim, s.Command = result.Claim, result.Command()
	s.Runs++
	s.Seeds = append(s.Seeds, result.Seed)
	if result.Verdict.Failed() {
		s.Failed++
	}
	if result.Verdict == api.Inconclusive {
		s.Inconclusive++
	}
	order := []api.Verdict{api.Safe, api.NotShown, api.Inconclusive, api.Wasteful, api.Aborted, api.Stalled, api.Broken}
	if first || slices.Index(order, result.Verdict) > slices.Index(order, s.Verdict) {
		s.Verdict, s.Why = result.Verdict, result.Why
	}
	s.Agrees = s.Agreement() != api.Contradicts
	if s.Claim == api.Breaks && s.Failed == 0 && s.Inconclusive < s.Runs {
		s.Verdict = api.NotShown
	}
	return s
}

// Agreement compares the runs with the claim: see Claim.Agreement of package experiment.
func (s Summary) Agreement() string { return s.Claim.Agreement(s.Runs, s.Failed, s.Inconclusive) }

// MySQLVersions returns one line: the version of MySQL or MariaDB on which most hazards ran, then
// in brackets each other version with its hazards. It is empty if no result names a version.
func MySQLVersions(results []experiment.Result) string {
	hazards := map[string][]api.Hazard{} // by version
	var versions []string
	for _, result := range results {
		if result.MySQL == "" || slices.Contains(hazards[result.MySQL], result.Hazard) {
			continue
		}
		if hazards[result.MySQL] == nil {
			versions = append(versions, result.MySQL)
		}
		hazards[result.MySQL] = append(hazards[result.MySQL], result.Hazard)
	}
	slices.SortStableFunc(versions, func(a, b string) int { return len(hazards[b]) - len(hazards[a]) })
	if len(versions) < 2 {
		return strings.Join(versions, "")
	}
	others := make([]string, 0, len(versions))
	for _, version := range versions[1:] {
		others = append(others, api.JoinHazards(hazards[version], ", ")+": "+version)
	}
	return versions[0] + " (" + strings.Join(others, "; ") + ")"
}

// Contradictions lists the summaries that disagree with the card, the strategy's description.
func (m Matrix) Contradictions(lang string) (lines []string) {
	m.each(func(r Row, hazard api.Hazard, s Summary) {
		if !s.Agrees {
			line := api.Textf("%s, %s: the card claims that this does not break it, but it failed in %d of %d runs.", "%s，%s：卡片声明它不会被破坏，但 %[4]d 次运行中有 %[3]d 次失败。", r.name(), hazard, s.Failed, s.Runs)
			if s.Claim == api.Breaks {
				line = api.Textf("%s, %s: the card claims that this breaks it, but it failed only in %d of %d runs.", "%s，%s：卡片声明它会被破坏，但 %[4]d 次运行中只有 %[3]d 次失败。", r.name(), hazard, s.Failed, s.Runs)
			}
			lines = append(lines, api.Joined(line, s.Why).In(lang))
		}
	})
	return lines
}

// Inconclusive lists the summaries with a claim that have an inconclusive run.
func (m Matrix) Inconclusive(lang string) (lines []string) {
	m.each(func(r Row, hazard api.Hazard, s Summary) {
		if s.Inconclusive > 0 && s.Claim != api.Silent {
			line := api.Textf("%s, %s: inconclusive in %d of %d runs.", "%s，%s：%[4]d 次运行中有 %[3]d 次无法判定。", r.name(), hazard, s.Inconclusive, s.Runs)
			lines = append(lines, api.Joined(line, s.Why).In(lang))
		}
	})
	return lines
}

// runs returns the highest number of runs of a summary.
func (m Matrix) runs() (most int) {
	m.each(func(_ Row, _ api.Hazard, s Summary) { most = max(most, s.Runs) })
	return most
}

func (m Matrix) each(do func(r Row, hazard api.Hazard, s Summary)) {
	for _, r := range m.Rows {
		for _, hazard := range m.Hazards {
			if s, ok := r.Summaries[hazard]; ok {
				do(r, hazard, s)
			}
		}
	}
}

func (r Row) name() string {
	return experiment.Result{Strategy: r.Strategy, Fenced: r.Fenced}.Name()
}
