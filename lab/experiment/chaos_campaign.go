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
	// Again counts the plans that failed by a hazard that the card names, and that an earlier plan has shown.
	Again int
	// Missing are the faults that apply, and never landed.
	Missing []chaos.Verb

	known []Drawn // the first plan of each hazard that the card names: shrunk at the end, as it is no news
}

// Finding is a plan that failed, after it was shrunk.
type Finding struct {
	Drawn
	First chaos.Plan // as it was drawn
	Tries int        // until First failed again; 0 means that it never did
}

// Contradicted reports whether the card does not name a finding that failed again. One that never did decides nothing.
func (s *Survey) Contradicted() bool {
	return slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Named == "" && f.Tries != 0 })
}

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
		steps := slices.Concat(bed.LockOf(s).Steps, []api.Step{api.Queued, api.Part, api.Released})
		for _, m := range c.Plan {
			if m.At != "" && !slices.Contains(steps, m.At) { // a request would never stop there
				return nil, fmt.Errorf("%s has no step %q; a request can stop at %q", s.Name(), m.At, steps)
			}
		}
		all = append(all, &Survey{Subject: s, Coverage: chaos.Coverage{}})
	}
	defer func() {
		for _, s := range all {
			if c.Plan != nil || s.Contradicted() {
				continue // nobody asks what else would have been found
			}
			s.Missing = s.Coverage.Missing(bed.faultsFor(s.Subject.Card))
		}
	}()
	began, left := time.Now(), slices.Clone(all)
	for seed := c.Seed; len(left) > 0 && (seed == c.Seed || time.Since(began) < c.For); seed++ {
		for _, s := range left {
			if err := c.once(ctx, bed, s, seed, w); err != nil {
				return all, fmt.Errorf("%s, seed %d: %w", s.Subject.Name(), seed, err)
			}
		}
		left = slices.DeleteFunc(left, (*Survey).Contradicted)
	}
	for _, s := range left {
		for _, d := range s.known {
			if err := c.shrink(ctx, bed, s, d, w); err != nil {
				return all, fmt.Errorf("%s, seed %d: %w", s.Subject.Name(), d.Seed, err)
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
	case d.Named == "":
		return c.shrink(ctx, bed, s, d, w)
	case slices.ContainsFunc(s.known, func(k Drawn) bool { return k.Named == d.Named }):
		s.Again++
	default:
		s.known = append(s.known, d)
	}
	return nil
}

// shrink repeats a plan that failed, and shortens it as long as it fails in the same way. A plan that was given, and not
// drawn, stays as it is.
func (c Campaign) shrink(ctx context.Context, bed *Testbed, s *Survey, d Drawn, w CampaignWatcher) (err error) {
	f := Finding{Drawn: d, First: d.Moves}
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
	if f.Tries = 1; c.Plan == nil {
		f.Tries = again(d.Moves, tries)
	}
	if c.Plan == nil && f.Tries > 0 {
		chaos.Shrink(f.Moves, func(p chaos.Plan) bool { return again(p, 2) > 0 })
	}
	if err == nil && ctx.Err() == nil {
		s.Findings = append(s.Findings, f)
		w.Found(s, f)
	}
	return err
}

// Inconclusive reports whether a fault that applies never landed, or a plan failed that never failed again.
func (s *Survey) Inconclusive() bool {
	return len(s.Missing) > 0 || slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Tries == 0 })
}
