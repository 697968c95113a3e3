package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// play carries out the plan of a hazard, or the one of its plans that the seed chooses, for one group of strategies after
// the other: those that one fault can serve.
func (r *round) play(ctx context.Context) (results []Result, err error) {
	onRow, others := divide(r.subjects, func(s Subject) bool { return r.OnRow != "" && s.Card.lockService() == "mysql" })
	for text, subjects := range map[string][]Subject{r.OnRow: onRow, by(r.seed, r.Plans...): others} {
		plan, err := chaos.Parse(text)
		if err != nil && len(subjects) > 0 {
			return nil, fmt.Errorf("hazard %s: %w", r.Hazard, err)
		}
		some, err := r.with(subjects...).inGroups(ctx, plan, (*round).playOnce)
		results = append(results, some...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// oncePlayed carries out a plan once, on the strategies of a round that one fault can serve. The number is that of a plan for
// each n, otherwise 0.
type oncePlayed func(r *round, ctx context.Context, plan chaos.Plan, nth int) ([]Result, *player, error)

// inGroups carries out a plan on one group of strategies after the other: once, or for each n.
func (r *round) inGroups(ctx context.Context, plan chaos.Plan, once oncePlayed) (results []Result, err error) {
	groups := map[string][]Subject{}
	for _, s := range r.subjects {
		group := together(plan, s)
		if r.bed.Rig.Config().RedisTopology == rig.RedisCluster { // the keys of two strategies may be on two masters
			group = s.Name()
		}
		groups[group] = append(groups[group], s)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		var some []Result
		var err error
		if group := r.with(groups[name]...); plan[0].Do == chaos.Each {
			some, err = group.forEach(ctx, plan, once)
		} else {
			some, _, err = once(group, ctx, plan, 0)
		}
		results = append(results, some...)
		if err != nil {
			return results, fmt.Errorf("%s: %w", strings.TrimSpace("plan "+name), err)
		}
	}
	return results, nil
}

func divide(all []Subject, so func(Subject) bool) (these, others []Subject) {
	for _, s := range all {
		if so(s) {
			these = append(these, s)
		} else {
			others = append(others, s)
		}
	}
	return these, others
}

// together names the group of a strategy: one fault of the plan can serve all strategies of a group, and harms none that it
// does not mean.
func together(plan chaos.Plan, s Subject) string {
	if plan.Has(chaos.Holds, chaos.HoldsRow, chaos.Loses, chaos.LosesRenewal) {
		return s.Name()
	}
	var group []string
	service := s.Card.lockService()
	if onServers := plan.Has(chaos.Cut, chaos.Disconnect, chaos.Slow, chaos.Crashes, chaos.Restarts, chaos.Stalls); onServers && service == "mysql" {
		group = append(group, "mysql") // each strategy needs its row
	}
	if plan.Has(chaos.Deletes) {
		if group = append(group, service); service == "mysql" { // see clearLockTables
			group = append(group, s.Name())
		}
	}
	if plan.Has(chaos.FailsOver, chaos.Lags, chaos.RowLags) && s.Card.Stock != "" {
		group = append(group, "stock in "+s.Card.Stock)
	}
	if slices.ContainsFunc(plan, func(m chaos.Move) bool { return m.IfRenews }) && s.Card.Renews {
		group = append(group, "renewed")
	}
	return strings.Join(group, " ")
}

// playOnce carries out a plan once, on strategies that one fault can serve.
func (r *round) playOnce(ctx context.Context, plan chaos.Plan, nth int) (results []Result, p *player, err error) {
	database := r.bed.Rig.Config().Database
	r.twoNodes = database == rig.Galera || database == rig.TwoMasters
	r.drawReplicas()
	if plan.Has(chaos.Deletes) {
		if err := clearLockTables(ctx, r); err != nil {
			return nil, nil, err
		}
	}
	if p, err = r.begin(ctx); err != nil {
		return nil, nil, err
	}
	p.nth = nth
	if err := errors.Join(p.play(ctx, plan), p.finish(context.WithoutCancel(ctx))); err != nil {
		return nil, p, err
	}
	r.began, r.spans, r.injectedAt, r.missed = p.began, p.spans, p.struckAt, p.missed(plan)
	for _, run := range p.runs {
		of := run.participant(plan)
		if of.nth = nth; nth > 0 && p.onCommand() != nil && !r.bed.idle {
			of.command = p.onCommand().fault.Command()
		}
		if r.injectedAt == 0 { // no fault: from the contender's request
			r.injectedAt = of.ops[contender].Call
		}
		results = append(results, r.result(ctx, of))
	}
	return results, p, ctx.Err()
}

// begin returns a player of the hazard, whose strategies have their products.
func (r *round) begin(ctx context.Context) (p *player, err error) {
	for i := range r.subjects {
		if r.subjects[i].product, err = r.bed.addProduct(ctx, r.on[holder], pieces); err != nil {
			return nil, err
		}
	}
	if err := r.bed.Rig.AwaitEven(ctx); err != nil {
		return nil, err
	}
	p = r.bed.player([chaos.Clients]int{r.on[holder], r.on[contender], r.on[observer], r.on[holder]}, r.subjects...)
	p.stepOf = func(c Card, step api.Step) api.Step {
		return c.stepFor(r.Hazard, c.stepFor(r.ClaimedAs, step))
	}
	return p, nil
}

// mostCommands limits the commands of an acquisition or of a release, for a lock that never ends.
const mostCommands = 8

// forEach carries out a plan on one strategy for each command of its lock, until a run fails, or the lock sends no more. It
// returns the last run. A program does not report its commands, but the link to its server shows them, whatever their names
// are: nothing else on its replica runs then.
func (r *round) forEach(ctx context.Context, plan chaos.Plan, once oncePlayed) ([]Result, error) {
	last := r.safe(r.subjects[0], 0, nil)
	last.Verdict = api.Inconclusive // until a command was seen, or that there is none
	last.Why = api.Text{EN: "No command of the lock was seen.", ZH: "没有看到锁的任何命令。"}
	late, refused := plan.Has(chaos.Slow), false
	for nth := plan[0].Nth; nth <= mostCommands && !last.Verdict.Failed() && (!late || last.Verdict == api.Inconclusive); nth++ {
		results, p, err := once(r.with(r.subjects...), ctx, plan[1:].With(nth), nth)
		if err = errors.Join(err, r.bed.heal(context.WithoutCancel(ctx))); err != nil {
			return []Result{last}, fmt.Errorf("command %d: %w", nth, err)
		}
		holder, on := p.runs[0].clients[0], p.onCommand()
		switch {
		case r.bed.idle || on == nil:
			return []Result{last}, nil
		case late && holder.op.Outcome == history.Refused && on.fault.Others():
			refused = true
			continue
		case !on.landed && nth == plan[0].Nth && nth > 1 && on.fault.Others():
			last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock sends one command, so nothing comes between.", ZH: "锁只发送一条命令，中间插不进别的命令。"}
			return []Result{last}, nil
		case !on.landed && !late:
			return []Result{last}, nil
		}
		last = results[0]
		if last.Verdict.Failed() && plan.Has(chaos.Heals) {
			last.Why = api.Joined(api.Textf("The command %[1]s, number %[2]d, arrived late.", "第 %[2]d 条命令 %[1]s 迟到。", on.fault.Command(), nth), last.Why)
		}
	}
	if refused && last.Verdict == api.Inconclusive {
		last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock was not granted while its answers were late.", ZH: "应答迟到时，锁没有授予。"}
	}
	return []Result{last}, ctx.Err()
}

// onCommand returns the fault that holds a command back, or loses its answer.
func (p *player) onCommand() *struck {
	i := slices.IndexFunc(p.injected, func(s *struck) bool { return s.Do == chaos.Holds || s.Do == chaos.Loses })
	if i < 0 {
		return nil
	}
	return p.injected[i]
}

// missed returns an error if the plan has faults, and none has had its effect.
func (p *player) missed(plan chaos.Plan) (err error) {
	if !slices.ContainsFunc(plan, func(m chaos.Move) bool {
		return m.Do.IsFault() && m.Do != chaos.Boots && m.Do != chaos.Renews && m.Do != chaos.Lags && m.Do != chaos.RowLags
	}) {
		return nil
	}
	for _, s := range p.injected {
		if s.landed {
			return nil
		}
		err = errors.Join(err, s.missed)
	}
	if err == nil {
		err = errors.New("no fault of the plan can strike this lock")
	}
	return err
}

// participant returns the requests of a run by their roles. A is the holder. The contender is B, or else D.
func (r *run) participant(plan chaos.Plan) *participant {
	p := &participant{Subject: r.subject, stops: plan[slices.IndexFunc(plan, func(m chaos.Move) bool { return m.Client == 0 && m.Do == chaos.Sells })].At != ""}
	for _, b := range r.clients {
		r.collect(b)
	}
	p.all = slices.Clone(r.ops)
	slices.SortStableFunc(p.all, func(a, b history.Op) int { return a.Client - b.Client })
	roles, taken := [chaos.Clients]int{holder, contender, observer, contender}, map[int]bool{}
	for _, op := range p.all {
		part := roles[op.Client-1]
		if taken[part] {
			part = successor
		}
		if !taken[part] {
			p.ops[part], taken[part] = op, true
		}
	}
	if a := r.clients[0]; a.halted || !p.stops {
		p.stopped = a.first
		for _, e := range r.bed.rec.eventsOf(r.subject.key()) {
			if p.stopped == "" && e.Replica == name(a.on) {
				p.stopped = e.Owner
			}
		}
	}
	return p
}

// reads lets a client ask for more pieces than there are. The result leaves it out: see Experiment.
func (r *run) reads(ctx context.Context, b *buyer) error {
	var op history.Op // a client of a cluster on trial may need several tries: some nodes of it do not answer
	if err := eventually(ctx, "an answer", func() bool {
		op = r.bed.buy(ctx, b.on, r.subject, url.Values{"qty": {strconv.Itoa(pieces + 1)}})
		return op.Reason == history.SoldOut
	}); err != nil {
		return fmt.Errorf("%s: more pieces than there are: %s, want %s: %w", r.subject.Name(), op.Reason, history.SoldOut, err)
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.began = max(r.began, r.bed.since())
	return nil
}

// waits returns how long a sale of a plan waits for the lock.
func (r *run) waits(m chaos.Move) time.Duration {
	switch c := r.subject.Card; {
	case m.Try:
		return 0
	case m.Early && c.Locker && c.Lease && !c.Renews:
		return Lease / 2
	}
	return r.lasts(m.For, grantBound)
}

// Made is the hazard of a plan that a user has made up.
const Made = "plan"

// MadeUp returns the hazard of a plan. Each strategy is judged as in a random plan.
func MadeUp(plan chaos.Plan) Experiment {
	text := api.Verbatim(plan.String())
	return Experiment{
		Hazard: Made, Title: text, Shows: api.Text{EN: "does the stock agree with the sales, and does the next client get the lock?", ZH: "库存与销售一致吗？下一个客户端能拿到锁吗？"},
		Plans: []string{plan.String()}, Applies: always,
		perform: func(ctx context.Context, r *round) (results []Result, err error) {
			results, err = r.inGroups(ctx, plan, (*round).make)
			for i := range results {
				if plan[0].Do == chaos.Each { // the run had one n
					results[i].Plan = plan.String()
				}
			}
			return results, err
		},
	}
}

// make carries out a plan that a user has made up once. The results say which hazard it is, and which moves were impossible.
func (r *round) make(ctx context.Context, plan chaos.Plan, nth int) (results []Result, p *player, err error) {
	for i := range r.subjects {
		if r.subjects[i].product, err = r.bed.addProduct(ctx, 0, plenty); err != nil {
			return nil, nil, err
		}
	}
	all, p, err := r.bed.playOn(ctx, plan, nth, r.subjects...)
	for i, d := range all {
		d.Seed = r.seed
		if d.Verdict.Failed() {
			d.Why = api.Joined(d.Why, Finding{Drawn: d}.About())
		}
		if len(d.Skipped) > 0 {
			d.Why = api.Joined(d.Why, api.Textf("Skipped, because impossible then: %s.", "当时做不到而跳过：%s。", d.Skipped.String()))
		}
		for _, b := range p.runs[i].clients {
			if b.at != "" {
				d.Why = api.Joined(d.Why, api.Textf("%s never stopped at %q.", "%s 没有停在 %q。", chaos.Name(b.client), b.at))
			}
		}
		if missed := p.missed(plan); missed != nil && d.Verdict == api.Safe {
			d.Verdict, d.Why = api.Inconclusive, api.Joined(api.Textf("The fault did not land: %v.", "故障没有生效：%v。", missed), d.Why)
		}
		d.Hazard = Made
		results = append(results, d.Result)
	}
	return results, p, err
}
