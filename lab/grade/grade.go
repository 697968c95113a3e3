package grade

import "oversell/api"

// Finding is the result of one requirement.
type Finding struct {
	Requirement string `json:"requirement"`
	// Kept means that an earlier exercise has introduced the requirement.
	Kept bool `json:"kept,omitempty"`
	Met  bool `json:"met"`
	// Found says what was found, or why the requirement was not checked.
	Found api.Text `json:"found"`
	// Checked is false if the time was over, or an earlier failure made the check useless.
	Checked bool `json:"checked"`
}

// Grade is the result of a submission.
type Grade struct {
	Exercise Exercise  `json:"exercise"`
	Score    int       `json:"score"` // requirements that are met
	Of       int       `json:"of"`
	Findings []Finding `json:"findings"`
	// Hint belongs to the first requirement that failed. It is nil if all are met.
	Hint *Hint `json:"hint,omitempty"`
}

// Of returns the grade of these findings.
func Of(e Exercise, findings []Finding) Grade {
	g := Grade{Exercise: e, Of: len(findings), Findings: findings}
	for _, f := range findings {
		if f.Met {
			g.Score++
		}
	}
	if failed := g.Failed(); failed != nil {
		g.Hint = hintFor(failed.Requirement)
	}
	return g
}

// Failed returns the first requirement that was checked and is not met, or nil. If none was checked,
// it returns the first one that is not met.
func (g Grade) Failed() *Finding {
	var unchecked *Finding
	for i := range g.Findings {
		f := &g.Findings[i]
		switch {
		case f.Met:
		case f.Checked:
			return f
		case unchecked == nil:
			unchecked = f
		}
	}
	return unchecked
}

// Passed reports whether all requirements are met.
func (g Grade) Passed() bool { return g.Score == g.Of }
