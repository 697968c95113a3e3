package matrix

import (
	"fmt"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/experiment"
)

// PlanLines says what a hazard does, for people: each plan on one line, and the moves of the only plan as numbered
// sentences.
func PlanLines(e experiment.Experiment, lang string) (lines []string) {
	if len(e.Plans) == 0 {
		return []string{api.Text{EN: "It is no plan, but a load or a measurement.", ZH: "它不是一个计划，而是一段负载或一次测量。"}.In(lang)}
	}
	if len(e.Plans) > 1 {
		lines = append(lines, api.Text{EN: "The seed chooses one of these plans:", ZH: "种子选择其中一个计划："}.In(lang))
	}
	lines = append(lines, e.Plans...)
	if len(e.Plans) == 1 {
		lines = append(lines, Steps(e.Plans[0], lang)...)
	}
	return lines
}

// Steps returns the moves of a plan as numbered sentences.
func Steps(text, lang string) (lines []string) {
	plan, err := chaos.Parse(text)
	if err != nil {
		return nil
	}
	for i, m := range plan {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, m.Words().In(lang)))
	}
	return lines
}
