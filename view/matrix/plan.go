package matrix

import (
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/experiment"
)

// examples has each move that a plan can have, and each word that changes one.
const examples = "for each n, A holds n, A sells, A sells again, A sells at read, A sells try, A sells for 0.5 s, A sells briefly, A sells working 2 leases, A sells nested, A sells a then b, " +
	"A resumes, A resumes at writing, A ends, A stops, A cancels, A reads, a lease passes, 2 leases pass, 2 leases pass if renewed, " +
	"A locks, A locks many, A locks leased, A unlocks, A awaits, A counts, " +
	"A freezes, A thaws, A starves, A dies, A starts, A is restarted, A loses power, A runs ahead, A renews, " +
	"A is cut off, A is cut off from servers 1-2, A reconnects, A slows, A speeds up, A is refused, A is served, A disconnects, A loses its session, " +
	"A holds 2, A delivers, A holds row 2, A delivers row, A loses 1, A loses a renewal, locks deleted, " +
	"server 1 crashes, server 1 restarts, server 1 stalls, server 1 jumps, all clocks jump, clocks agree, a minority dies, a majority dies, " +
	"replication stops, writing behind stops, redis fails over, redis fails back, " +
	"A stays with the old master, A joins the new master, all Sentinels die but 2, the Sentinels start, the slot moves to stage 2"

// WriteMoves writes a Markdown list of the moves.
func WriteMoves(w io.Writer) error {
	moves, err := chaos.Parse(examples)
	if err != nil {
		return err
	}
	lines := make([]string, len(moves))
	for i, m := range moves {
		lines[i] = fmt.Sprintf("- %#q: %s\n", m, m.Words().EN)
	}
	_, err = fmt.Fprint(w, strings.Join(lines, ""))
	return err
}

// Plan is the plan of a run on a page. It is empty if there is none.
type Plan struct {
	Moves         []string
	Hint, Command string // to carry it out again
}

// PlanOf describes the plan that a result has: see experiment.Result.Planned.
func PlanOf(r experiment.Result, lang string) (p Plan) {
	plan, err := chaos.Parse(r.Plan)
	if err != nil {
		return p
	}
	for _, m := range plan {
		p.Moves = append(p.Moves, m.Words().In(lang))
	}
	p.Hint, p.Command = api.Text{EN: "The plan, to change it:", ZH: "可以修改的计划："}.In(lang), r.Command()
	return p
}

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
	for i, move := range PlanOf(experiment.Result{Plan: text}, lang).Moves {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, move))
	}
	return lines
}
