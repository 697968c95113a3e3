package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
)

// Campaign draws plans for strategies, one after the other, and carries them out.
type Campaign struct {
	Subjects []Subject
	Plan     chaos.Plan    // carried out on each subject, instead of drawn ones; may be nil
	For      time.Duration // no plan begins later; 0 means one plan for each subject
	Seed     int64         // of the first plan; each plan has the next one
	Adapter  string        // as Plan.Adapter
}

// Survey is what a campaign has found about one strategy.
type Survey struct {
	Subject  Subject
	Plans    int
	Coverage chaos.Coverage
	Findings []Finding
	// Again counts the plans that failed by a hazard that the card names, and that another finding has shown already.
	Again map[string]int
	// Missing are the faults that apply, and never landed.
	Missing []chaos.Verb
}

// Finding is a plan that failed, after it was shrunk.
type Finding struct {
	Drawn
	First chaos.Plan // as it was drawn
	Tries int        // until First failed again; 0 means that it never did
}

// Contradicts reports whether the finding is one that the card does not name.
func (f Finding) Contradicts() bool { return f.Named == "" }

// Contradicted reports whether a finding is one that the card does not name.
func (s *Survey) Contradicted() bool { return slices.ContainsFunc(s.Findings, Finding.Contradicts) }

// tries limits the repetitions of a plan that has failed once.
const tries = 20

// CampaignWatcher receives the progress of a campaign.
type CampaignWatcher interface {
	// Ran is called after each plan.
	Ran(s *Survey, d Drawn, took time.Duration)
	// Shrinking is called before each repetition of a plan that has failed.
	Shrinking(s *Survey, p chaos.Plan)
	Found(s *Survey, f Finding)
}

// Conduct carries out the campaign. A strategy whose card a finding contradicts gets no more plans.
func (c Campaign) Conduct(ctx context.Context, bed *Testbed, w CampaignWatcher) (all []*Survey, err error) {
	for _, s := range c.Subjects {
		all = append(all, &Survey{Subject: s, Coverage: chaos.Coverage{}, Again: map[string]int{}})
	}
	defer func() {
		for _, s := range all {
			s.Missing = s.Coverage.Missing(bed.faultsFor(s.Subject.Card))
		}
	}()
	began, left := time.Now(), slices.Clone(all)
	for seed := c.Seed; len(left) > 0 && (seed == c.Seed || time.Since(began) < c.For); seed++ {
		for i := 0; i < len(left); i++ {
			if err := c.once(ctx, bed, left[i], seed, w); err != nil {
				return all, fmt.Errorf("%s, seed %d: %w", left[i].Subject.Name(), seed, err)
			}
			if left[i].Contradicted() {
				left = slices.Delete(left, i, i+1)
				i--
			}
		}
	}
	return all, ctx.Err()
}

func (c Campaign) once(ctx context.Context, bed *Testbed, s *Survey, seed int64, w CampaignWatcher) error {
	plan := c.Plan
	if plan == nil {
		plan = chaos.Draw(seed, bed.LockOf(s.Subject))
	}
	began := time.Now()
	d, err := bed.CarryOut(ctx, s.Subject, plan, seed)
	if err != nil {
		return err
	}
	d.Adapter = c.Adapter
	s.Plans++
	s.Coverage.Add(d.Coverage)
	w.Ran(s, d, time.Since(began))
	switch {
	case !d.Verdict.Failed():
		return nil
	case s.knows(d):
		s.Again[d.Named]++
		return nil
	}
	f, err := c.shrink(ctx, bed, s, d, w)
	if err == nil {
		s.Findings = append(s.Findings, f)
		w.Found(s, f)
	}
	return err
}

// knows reports whether the survey has a finding of the hazard that the card names for this one.
func (s *Survey) knows(d Drawn) bool {
	return d.Named != "" && slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Named == d.Named })
}

// shrink repeats a plan that failed, and shortens it as long as it fails in the same way. A plan that was given, and not
// drawn, stays as it is.
func (c Campaign) shrink(ctx context.Context, bed *Testbed, s *Survey, d Drawn, w CampaignWatcher) (f Finding, err error) {
	f = Finding{Drawn: d, First: d.Moves}
	// again returns the number of repetitions until p failed in the same way, or 0.
	again := func(p chaos.Plan, most int) int {
		for n := 1; n <= most && err == nil && ctx.Err() == nil; n++ {
			w.Shrinking(s, p)
			var next Drawn
			if next, err = bed.CarryOut(ctx, s.Subject, p, d.Seed); err != nil {
				break
			}
			if next.Verdict == d.Verdict && next.Invariant == d.Invariant {
				next.Adapter = c.Adapter
				f.Drawn = next
				return n
			}
		}
		return 0
	}
	if c.Plan != nil {
		return f, nil
	}
	if f.Tries = again(d.Moves, tries); f.Tries > 0 {
		chaos.Shrink(d.Moves, func(p chaos.Plan) bool { return again(p, 2) > 0 })
	}
	return f, err
}

// Verdict returns the verdict on the strategy. It is inconclusive if a fault that applies never landed.
func (s *Survey) Verdict() api.Verdict {
	switch {
	case len(s.Findings) > 0:
		return s.Findings[len(s.Findings)-1].Verdict
	case len(s.Missing) > 0:
		return api.Inconclusive
	default:
		return api.Safe
	}
}
