package experiment

import (
	"context"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/player"
)

// RandomPlans returns the hazard chaos of the page: random plans on each strategy, until one fails. It is not among All,
// because another seed or a slower machine may find something else.
func RandomPlans() Experiment {
	return Experiment{
		Hazard: Chaos, Fenced: true, promised: true,
		Title:   api.Text{EN: "random plans of moves and faults", ZH: "随机的动作与故障"},
		Shows:   api.Text{EN: "the moves that are left of the plan that failed", ZH: "失败的计划缩短后剩下的动作"},
		Applies: func(c api.Card) bool { return !c.OnTrial() },
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			all, err := Campaign{Subjects: r.subjects, For: 5 * time.Minute, Enough: 30, Seed: r.seed}.Conduct(ctx, []*player.Testbed{r.bed}, unwatched{})
			results := make([]Result, len(all))
			for i, s := range all {
				results[i] = s.worst(r.seed)
			}
			return results, err
		},
	}
}

// unwatched ignores the progress of a campaign.
type unwatched struct{}

func (unwatched) Ran(*Survey, Drawn, time.Duration) {}
func (unwatched) Failed(*Survey, int64, error)      {}
func (unwatched) Shrinking(*Survey, chaos.Plan)     {}
func (unwatched) Found(*Survey, Finding)            {}

// worst returns the finding that the card does not name, or else one that it names. Without a finding, it says how many
// plans held, and which faults never landed.
func (s *Survey) worst(seed int64) Result {
	r := Result{Hazard: Chaos, Strategy: s.Subject.Card.ID, Fenced: s.Subject.Fenced, Seed: seed, Verdict: api.Safe}
	r.Why = api.Textf("None of %d plans failed.", "%d 个计划都没有失败。", s.Plans)
	if len(s.Findings) > 0 {
		news := slices.IndexFunc(s.Findings, func(f Finding) bool { return f.Claim == api.Protects })
		f := s.Findings[max(0, news)]
		r = f.Result
		r.Why = api.Joined(f.Why, f.About())
		if f.Tries == 0 {
			r.Verdict, r.Why = api.Inconclusive, api.Joined(r.Why, f.Repeated())
		}
		return r
	}
	if len(s.Missing) > 0 {
		r.Verdict, r.Why = api.Inconclusive, api.Joined(r.Why, s.NeverLanded())
	}
	return r
}

// NeverLanded names the faults that apply and never landed, if there are any.
func (s *Survey) NeverLanded() api.Text {
	if len(s.Missing) == 0 {
		return api.Text{}
	}
	names := make([]string, len(s.Missing))
	for i, verb := range s.Missing {
		names[i] = string(verb)
	}
	return api.Textf("Inconclusive about: %[1]s, which never landed. Run it longer.", "无法判定：%[1]s 从未生效，请运行更久。", strings.Join(names, ", "))
}
