package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/player"
	"oversell/lab/stall"
)

// Campaign draws plans for strategies, one after the other, and carries them out.
type Campaign struct {
	Subjects []player.Subject
	Plan     chaos.Plan    // carried out on each subject, instead of drawn ones; may be nil
	For      time.Duration // no drawn plan begins later; 0 means one plan for each subject
	Enough   int           // if above 0: no more plans after a failure, or after Enough plans if each fault has landed
	Seed     int64         // of the first plan of each strategy; each later plan has the next seed
	Adapter  string        // see Selection.Adapter
}

// Survey is what a campaign has found about one strategy.
type Survey struct {
	Subject  player.Subject
	Plans    int
	Coverage chaos.Coverage
	Findings []Finding
	// Busy counts the plans that failed while this machine was too busy. They say nothing, and are not among Plans.
	Busy int
	// Again counts the plans that failed by a hazard that the card names, and that an earlier plan has shown.
	Again int
	// Missing are the faults that apply to the strategy, and never landed: they had no effect in any plan.
	Missing []chaos.Verb

	faults []chaos.Verb // the faults that apply to the strategy
	known  []Drawn      // the first plan of each hazard that the card names: shrunk at the end, as it is no news
	named  []api.Hazard // the hazards that the card names and a plan has shown
}

// Finding is a plan that failed, after it was shrunk.
type Finding struct {
	Drawn
	First   chaos.Plan // the plan as it was drawn; nil for a plan that was given
	Tries   int        // the number of repetitions until First failed again; 0 means that it never did
	Stopped bool       // the campaign ended, or its time was over, before the plan was repeated and shrunk
}

// doubtful reports whether the card does not name the finding, and the plan was repeated and never failed again. Such a
// finding decides nothing.
func (f Finding) doubtful() bool { return f.Claim == api.Protects && f.Tries == 0 && !f.Stopped }

// Contradicted reports whether a finding contradicts the card: the card does not name it, and it is not doubtful.
func (s *Survey) Contradicted() bool {
	return slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Claim == api.Protects && !f.doubtful() })
}

// About says whether the card names the finding. A lock on trial has the hello of its program instead.
func (f Finding) About() api.Text {
	lock, card := api.Text{EN: f.Strategy, ZH: "「" + f.Strategy + "」"}, api.Text{EN: "card", ZH: "卡片"}
	if f.Adapter != "" {
		lock, card = api.Text{EN: "the lock", ZH: "这把锁"}, api.Verbatim("hello")
	}
	say := func(en, zh string) api.Text {
		return api.Text{EN: fmt.Sprintf(en, f.Named, lock.EN, card.EN), ZH: fmt.Sprintf(zh, f.Named, lock.ZH, card.ZH)}
	}
	switch {
	case f.Named == "":
		return say("The %[3]s of %[2]s names no such hazard.", "%[2]s的%[3]s没有提到这种危险。")
	case f.Claim == api.Breaks:
		return say("This is the hazard %s, which breaks %s, as its %s says.", "这是危险 %[1]s：%[3]s说它会破坏%[2]s。")
	case f.Claim == api.Protects:
		return say("This is the hazard %[1]s. The %[3]s of %[2]s does not say that it breaks it.", "这是危险 %[1]s，%[2]s的%[3]s没有说会被它破坏。")
	}
	return say("This is the hazard %[1]s, about which the %[3]s of %[2]s says nothing.", "这是危险 %[1]s，%[2]s的%[3]s没有说明。")
}

// Repeated says whether the plan failed again, and how far it was shrunk. It is empty for a plan that was given.
func (f Finding) Repeated() (text api.Text) {
	switch {
	case f.First == nil:
	case f.Tries == 0 && f.Stopped:
		text = api.Text{EN: "Stopped before it was repeated.", ZH: "还没有重复，就停止了。"}
	case f.Tries == 0:
		text = api.Text{EN: "It did not fail again.", ZH: "重复时没有再次失败。"}
	default:
		text = api.Textf("It failed again at try %d; of %d moves, these remain.", "第 %d 次重复时再次失败；原有 %d 个动作，剩下这些。", f.Tries, len(f.First))
		if f.Stopped {
			text = api.Joined(text, api.Text{EN: "Shrinking was stopped: fewer may do.", ZH: "缩短过程被停止，也许还能更短。"})
		}
	}
	return text
}

// tries limits the repetitions of a plan that has failed once.
const tries = 20

// CampaignWatcher receives the progress of a campaign. Its methods are called one at a time.
type CampaignWatcher interface {
	// Ran is called after each plan.
	Ran(s *Survey, d Drawn, took time.Duration)
	// Failed is called for a plan that could not be carried out. The next plan goes on.
	Failed(s *Survey, seed int64, err error)
	// Shrinking is called before each repetition of a plan that has failed.
	Shrinking(s *Survey, p chaos.Plan)
	Found(s *Survey, f Finding)
}

// campaign is the state of a Campaign that several labs carry out.
type campaign struct {
	Campaign
	began time.Time

	mu    sync.Mutex // protects the fields below, the surveys, and the calls of the watcher
	watch CampaignWatcher
	all   []*Survey
	at    int // the number of the next plan
}

// Conduct carries out the campaign, in each lab one plan after the other. A strategy whose card a finding contradicts
// gets no more plans. A lab in which two plans in a row cannot be carried out gets no more.
func (c Campaign) Conduct(ctx context.Context, beds []*player.Testbed, w CampaignWatcher) ([]*Survey, error) {
	all := &campaign{Campaign: c, began: time.Now(), watch: w}
	for _, s := range c.Subjects {
		steps := slices.Concat(beds[0].LockOf(s).Steps, []api.Step{api.Queued, api.Part, api.Released})
		for _, m := range c.Plan {
			if m.At != "" && !slices.Contains(steps, m.At) { // a request would never stop there
				return nil, fmt.Errorf("%s has no step %q; a request can stop at %q", s.Name(), m.At, steps)
			}
		}
		all.all = append(all.all, &Survey{Subject: s, Coverage: chaos.Coverage{}, faults: beds[0].FaultsFor(s.Card)})
	}
	errs := make([]error, len(beds))
	var labs sync.WaitGroup
	for i, bed := range beds {
		labs.Go(func() { errs[i] = all.work(ctx, bed) })
	}
	labs.Wait()
	for _, s := range all.all {
		for _, d := range s.known { // not shrunk: the card is contradicted, or the campaign has ended
			all.found(s, Finding{Drawn: d, First: d.Moves, Stopped: true})
		}
		if c.Plan == nil && !s.Contradicted() { // else nobody asks what else would have been found
			s.Missing = s.Coverage.Missing(s.faults)
		}
	}
	return all.all, cmp.Or(errors.Join(errs...), ctx.Err())
}

// work carries out plans in one lab until none is left, and then shrinks the failed plans whose hazard the card names.
func (c *campaign) work(ctx context.Context, bed *player.Testbed) error {
	var before error
	for s, seed := c.next(); s != nil && ctx.Err() == nil; s, seed = c.next() {
		err := c.once(ctx, bed, s, seed)
		if err == nil {
			before = nil
			continue
		}
		if ctx.Err() != nil { // stopped, which Conduct returns
			break
		}
		err = fmt.Errorf("%s, seed %d: %w", s.Subject.Name(), seed, err)
		if before != nil || c.Plan != nil {
			return errors.Join(before, err)
		}
		before = err
		c.locked(func() { c.watch.Failed(s, seed, err) })
	}
	for s, d := c.nextKnown(); s != nil; s, d = c.nextKnown() {
		if err := c.shrink(ctx, bed, s, d); err != nil {
			return fmt.Errorf("%s, seed %d: %w", s.Subject.Name(), d.Seed, err)
		}
	}
	return nil
}

func (c *campaign) locked(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// next returns a strategy and the seed of its next plan: one plan for each strategy, then the next seed. It returns nil
// after the end.
func (c *campaign) next() (s *Survey, seed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; !c.done(); c.at++ {
		if s = c.all[c.at%len(c.all)]; c.wants(s) {
			seed = c.Seed + int64(c.at/len(c.all))
			c.at++
			return s, seed
		}
	}
	return nil, 0
}

func (c *campaign) done() bool {
	return c.at >= len(c.all) && time.Since(c.began) >= c.For || !slices.ContainsFunc(c.all, c.wants)
}

// wants reports whether a strategy gets another plan.
func (c *campaign) wants(s *Survey) bool {
	enough := c.Enough > 0 && (len(s.named) > 0 || s.Plans >= c.Enough && len(s.Coverage.Missing(s.faults)) == 0)
	return !s.Contradicted() && !enough
}

// nextKnown returns a failed plan that is not shrunk yet, because the card names its hazard. It returns nil after the
// last one.
func (c *campaign) nextKnown() (s *Survey, d Drawn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if n := len(s.known) - 1; n >= 0 && !s.Contradicted() {
			d, s.known = s.known[n], s.known[:n]
			return s, d
		}
	}
	return nil, d
}

func (c *campaign) once(ctx context.Context, bed *player.Testbed, s *Survey, seed int64) error {
	plan := c.Plan
	if plan == nil {
		plan = chaos.Draw(seed, bed.LockOf(s.Subject))
	}
	began := time.Now()
	d, err := c.carryOut(ctx, bed, s.Subject, plan, seed)
	if err != nil {
		return err
	}
	news := false
	c.locked(func() {
		c.watch.Ran(s, d, time.Since(began))
		if d.Verdict == api.Inconclusive {
			s.Busy++
			return
		}
		s.Plans++
		s.Coverage.Add(d.Coverage)
		switch {
		case !d.Verdict.Failed():
		case d.Claim == api.Protects:
			news = true
		case slices.Contains(s.named, d.Named):
			s.Again++
		default:
			s.known, s.named = append(s.known, d), append(s.named, d.Named)
		}
	})
	if !news {
		return nil
	}
	return c.shrink(ctx, bed, s, d)
}

// carryOut carries out a plan. If it contradicts the card, but this process got no processor for a while, renewals may have
// been late: then it is carried out again, and is inconclusive if it fails like this each time.
func (c *campaign) carryOut(ctx context.Context, bed *player.Testbed, s player.Subject, p chaos.Plan, seed int64) (d Drawn, err error) {
	busy := stall.Repeat(ctx, stall.Longest, bed.Stalled, func() (failed, late bool) {
		d, err = drawnRun(ctx, bed, s, p, seed)
		d.Adapter = c.Adapter
		return err == nil && d.contradicts(), false
	})
	if busy {
		d.Verdict = api.Inconclusive
	}
	return d, err
}

// shrink repeats a plan that failed, and shortens it as long as it fails in the same way, and contradicts the card if it
// did. It ends when For has passed twice, or one minute after For if that is later. A plan that was given, and not drawn,
// stays as it is.
func (c *campaign) shrink(ctx context.Context, bed *player.Testbed, s *Survey, d Drawn) (err error) {
	f, end := Finding{Drawn: d}, c.began.Add(c.For+max(c.For, time.Minute))
	// again returns the number of repetitions until p failed in the same way, or 0.
	again := func(p chaos.Plan, most int) int {
		for n := 1; n <= most; n++ {
			over := time.Now().After(end)
			if f.Stopped = ctx.Err() != nil || err != nil || over && (n == 1 || f.Tries > 0); f.Stopped || over {
				break
			}
			c.locked(func() { c.watch.Shrinking(s, p) })
			var next Drawn
			next, err = c.carryOut(ctx, bed, s.Subject, p, d.Seed)
			if err == nil && next.Verdict == d.Verdict && next.Invariant == d.Invariant && (f.Claim != api.Protects || next.Claim == api.Protects) {
				f.Drawn = next
				return n
			}
		}
		return 0
	}
	if f.Tries = 1; c.Plan == nil {
		f.First, f.Tries = d.Moves, 0
		f.Tries = again(d.Moves, tries)
	}
	if c.Plan == nil && f.Tries > 0 {
		chaos.Shrink(f.Moves, func(p chaos.Plan) bool { return again(p, 2) > 0 })
	}
	c.found(s, f)
	return err
}

// found adds a finding, also if the campaign has ended meanwhile.
func (c *campaign) found(s *Survey, f Finding) {
	c.locked(func() {
		same := func(o Finding) bool { return o.Named == f.Named && o.Invariant == f.Invariant && o.Claim == f.Claim }
		if f.Claim != api.Protects && slices.ContainsFunc(s.Findings, same) { // it had another hazard before it was shrunk
			s.Again++
			return
		}
		s.Findings = append(s.Findings, f)
		c.watch.Found(s, f)
	})
}

// Inconclusive reports whether a fault that applies never landed, the machine was too busy for each plan, or a plan that
// contradicted the card never failed again.
func (s *Survey) Inconclusive() bool {
	return s.Plans == 0 || len(s.Missing) > 0 || slices.ContainsFunc(s.Findings, Finding.doubtful)
}
