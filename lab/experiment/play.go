package experiment

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
	"oversell/lab/player"
	"oversell/lab/rig"
)

// planFor returns the plan of the hazard for a strategy; of several, the seed chooses one.
func (e Experiment) planFor(c api.Card, seed int64) string {
	if e.OnRow != "" && c.LockService() == "mysql" {
		return e.OnRow
	}
	return by(seed, e.Plans...)
}

// play carries out the plan of a hazard for one group of strategies after the other. One fault of the plan is enough for
// all strategies of a group.
func (r *round) play(ctx context.Context) (results []Result, err error) {
	groups, plans := map[string][]player.Subject{}, map[string]chaos.Plan{}
	for _, s := range r.subjects {
		text := r.planFor(s.Card, r.seed)
		plan, err := chaos.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("hazard %s: %w", r.Hazard, err)
		}
		group := together(plan, s)
		if r.bed.Rig.Config().RedisTopology == rig.RedisCluster { // the keys of two strategies may be on two masters
			group = s.Name()
		}
		name := strings.TrimSpace(text + " " + group)
		groups[name], plans[name] = append(groups[name], s), plan
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		var some []Result
		if group, plan := r.with(groups[name]...), plans[name]; plan[0].Do == chaos.Each {
			some, err = group.forEach(ctx, plan)
		} else {
			some, _, err = group.playOnce(ctx, plan, 0)
		}
		results = append(results, some...)
		if err != nil {
			return results, fmt.Errorf("plan %s: %w", name, err)
		}
	}
	return results, nil
}

// together names the group of a strategy: one fault of the plan can serve all strategies of a group, and harms none that it
// does not mean.
func together(plan chaos.Plan, s player.Subject) string {
	if plan.Has(chaos.Holds, chaos.HoldsRow, chaos.Loses, chaos.LosesRenewal) {
		return s.Name()
	}
	var group []string
	service := s.Card.LockService()
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

// playOnce carries out a plan once, and judges each strategy. nth is the n of a plan for each n, otherwise 0.
func (r *round) playOnce(ctx context.Context, plan chaos.Plan, nth int) (results []Result, all []*played, err error) {
	all, err = r.carryOut(ctx, plan, nth)
	for _, one := range all {
		result := r.judge(ctx, one)
		if r.promised {
			result = r.name(one, result).explained(one)
		}
		results = append(results, result)
	}
	return results, all, errors.Join(err, ctx.Err())
}

// carryOut carries out a plan once, on strategies that one fault can serve, and returns what was recorded of each.
func (r *round) carryOut(ctx context.Context, plan chaos.Plan, nth int) (all []*played, err error) {
	r.assign()
	p, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	p.Nth = nth
	if err := errors.Join(p.Play(ctx, plan), p.Finish(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	if r.promised {
		if err := p.BuyLast(ctx); err != nil {
			return nil, err
		}
	}
	for _, one := range p.Played(plan) {
		all = append(all, &played{Played: one})
	}
	return all, nil
}

// assign gives each role a replica: in a hazard, the seed chooses; in a plan that was drawn or made up, the order of the
// clients. It draws by seed and hazard only, so a new experiment does not change other draws.
func (r *round) assign() {
	r.subjects = slices.Clone(r.subjects)
	if r.promised {
		r.on = [roles]int{holder: 0, contender: 1, observer: 2}
		return
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(r.Hazard))
	random := rand.New(rand.NewPCG(uint64(r.seed), hash.Sum64())) //nolint:gosec // not a secret
	if database := r.bed.Rig.Config().Database; database == rig.Galera || database == rig.TwoMasters {
		// Replicas 1 and 3 write to node A, replica 2 writes to node B. The stock is read at node A.
		r.on = [roles]int{holder: 2 * random.IntN(2), contender: 1, observer: 1}
		r.countOn = r.on[holder]
	} else {
		copy(r.on[:], random.Perm(len(r.bed.Rig.Addresses().Replicas)))
		r.countOn = r.on[contender]
	}
	random.Shuffle(len(r.subjects), func(i, j int) { r.subjects[i], r.subjects[j] = r.subjects[j], r.subjects[i] })
}

// pieces returns the stock of each product: few for a hazard, whose figures people read, and otherwise plenty.
func (r *round) pieces() int {
	if r.promised {
		return plenty
	}
	return few
}

// few is the stock of each product of a hazard.
const few = 10

// begin returns a player of the hazard, whose strategies have their products.
func (r *round) begin(ctx context.Context) (p *player.Player, err error) {
	for i := range r.subjects {
		if r.subjects[i].Product, err = r.bed.AddProduct(ctx, r.on[holder], r.pieces()); err != nil {
			return nil, err
		}
	}
	if err := r.bed.Rig.AwaitEven(ctx); err != nil {
		return nil, err
	}
	p = r.bed.Player([chaos.Clients]int{r.on[holder], r.on[contender], r.on[observer], r.on[holder]}, r.subjects...)
	if p.Pieces = r.pieces(); r.promised {
		return p, nil
	}
	p.StepOf = func(c api.Card, step api.Step) api.Step {
		return c.StepFor(r.Hazard, c.StepFor(r.ClaimedAs, step))
	}
	return p, nil
}

// mostCommands is the largest n in a plan for each n, for a lock that sends commands without end.
const mostCommands = 8

// forEach carries out a plan on one strategy, once for each command of its lock. It ends when a run fails, or when the
// lock sends no nth command, and returns the last result. A plan with slow answers ends at its first conclusive run. A
// program does not report its commands, but the link to its server shows them, whatever their names are: nothing else on
// its replica runs then.
func (r *round) forEach(ctx context.Context, plan chaos.Plan) ([]Result, error) {
	last := r.safe(r.subjects[0], r.bed.Recording(r.subjects[0], 0, nil))
	last.Verdict = api.Inconclusive // until a command was seen, or until it is clear that there is none
	last.Why = api.Text{EN: "No command of the lock was seen.", ZH: "没有看到锁的任何命令。"}
	late, refused := plan.Has(chaos.Slow), false
	for nth := plan[0].Nth; nth <= mostCommands && !last.Verdict.Failed() && (!late || last.Verdict == api.Inconclusive); nth++ {
		results, runs, err := r.with(r.subjects...).playOnce(ctx, plan[1:].With(nth), nth)
		if err = errors.Join(err, r.bed.Heal(context.WithoutCancel(ctx))); err != nil {
			return []Result{last}, fmt.Errorf("command %d: %w", nth, err)
		}
		switch p := runs[0]; {
		case !p.Command.Struck:
			return []Result{last}, nil
		case late && p.Ops[holder].Outcome == history.Refused && p.Command.Others:
			refused = true
			continue
		case !p.Command.Landed && nth == plan[0].Nth && nth > 1 && p.Command.Others:
			last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock sends one command, so nothing comes between.", ZH: "锁只发送一条命令，中间插不进别的命令。"}
			return []Result{last}, nil
		case !p.Command.Landed && !late:
			return []Result{last}, nil
		}
		last = results[0]
		if last.Verdict.Failed() && plan.Has(chaos.Heals) {
			last.Why = api.Joined(api.Textf("The command %[1]s, number %[2]d, arrived late.", "第 %[2]d 条命令 %[1]s 迟到。", runs[0].Command.Name, nth), last.Why)
		}
	}
	if refused && last.Verdict == api.Inconclusive {
		last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock was not granted while its answers were late.", ZH: "应答迟到时，锁没有授予。"}
	}
	if r.promised { // the plan of the last run has a number in place of n
		last.Plan = plan.String()
	}
	return []Result{last}, ctx.Err()
}

// Made is the hazard of a plan that a user has made up.
const Made = "plan"

// MadeUp returns the hazard of a plan. Each strategy is judged as in a random plan.
func MadeUp(plan chaos.Plan) Experiment {
	text := api.Verbatim(plan.String())
	return Experiment{
		Hazard: Made, Title: text, Shows: api.Text{EN: "does the stock agree with the sales, and does the next client get the lock?", ZH: "库存与销售一致吗？下一个客户端能拿到锁吗？"},
		Plans: []string{plan.String()}, Applies: always, promised: true,
	}
}

// explained returns the result of a plan that a user has made up, with the hazard that explains a failure, and with the
// moves that were impossible.
func (d Drawn) explained(p *played) Result {
	if d.Verdict.Failed() {
		d.Why = api.Joined(d.Why, Finding{Drawn: d}.About())
	} else {
		d.Claim = api.Silent // no card says anything about a plan that is no hazard
	}
	if len(d.Skipped) > 0 {
		d.Why = api.Joined(d.Why, api.Textf("Skipped, because impossible then: %s.", "当时做不到而跳过：%s。", d.Skipped.String()))
	}
	for _, client := range slices.Sorted(maps.Keys(p.Never)) {
		d.Why = api.Joined(d.Why, api.Textf("%s never stopped at %q.", "%s 没有停在 %q。", client, p.Never[client]))
	}
	return d.Result
}

// name returns the result of a plan, with the hazard that explains a failure.
func (r *round) name(p *played, result Result) Drawn {
	result.Plan, result.Claim = p.Moves.String(), api.Protects
	d := Drawn{Result: result, Moves: p.Moves, Skipped: p.Skipped, Coverage: p.Coverage}
	if d.Verdict.Failed() {
		d.Named, d.Claim = p.knownHazard(result.Invariant)
	}
	return d
}

// drawnRun carries out a plan on a strategy, with a new product, and judges what was recorded. The moves of the result are
// those that were possible.
func drawnRun(ctx context.Context, bed *player.Testbed, s player.Subject, plan chaos.Plan, seed int64) (d Drawn, err error) {
	r := &round{Experiment: RandomPlans(), bed: bed, seed: seed, subjects: []player.Subject{s}}
	bed.Forget()
	lost := bed.LostEvents()
	all, err := r.carryOut(ctx, plan, 0)
	if err != nil {
		return d, err
	}
	result := r.judge(ctx, all[0])
	if s.Begins() == chaos.Sells {
		result = result.withLostEvents(bed.LostEvents() - lost)
	}
	result.MySQL = bed.MySQL
	return r.name(all[0], result), nil
}
