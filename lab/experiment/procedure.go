package experiment

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// pieces is the stock of each product in the usual procedure.
const pieces = 10

// These are the roles of the requests. drawReplicas chooses the replica of each role.
const (
	holder = iota
	contender
	observer
	successor // after the holder's sale
	roles
)

// participant is one strategy in a run.
type participant struct {
	Subject
	stopped [roles]string // owners of the requests that were stopped at a step
	stops   bool          // the holder is to stop
	events  []history.Event
	nth     int    // of a plan for each n
	command string // the name of the command that was held back, or whose answer was lost
	ops     [roles]history.Op
	ended   [roles]chan struct{}
}

type finding struct {
	verdict   api.Verdict
	invariant string
	why       api.Text
}

// proceed carries out the usual procedure, for one group of subjects after the other.
func (r *round) proceed(ctx context.Context) (results []Result, err error) {
	if len(r.Plans) > 0 {
		return r.play(ctx)
	}
	if r.vary != nil {
		r.Experiment = r.vary(r.Experiment, r.seed)
	}
	if r.group == nil {
		return r.once(ctx)
	}
	groups := map[string][]Subject{}
	for _, subject := range r.subjects {
		groups[r.group(subject)] = append(groups[r.group(subject)], subject)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		some, err := r.with(groups[name]...).once(ctx)
		results = append(results, some...)
		if err != nil {
			return results, fmt.Errorf("%s: %w", name, err)
		}
	}
	return results, nil
}

// with returns a round of the same experiment for these subjects.
func (r *round) with(subjects ...Subject) *round {
	return &round{Experiment: r.Experiment, bed: r.bed, seed: r.seed, subjects: subjects}
}

func (r *round) once(ctx context.Context) ([]Result, error) {
	r.drawReplicas()
	if err := r.stopHolders(ctx); err != nil {
		return nil, fmt.Errorf("stop the holders: %w", err)
	}
	if err := r.execute(ctx); err != nil {
		return nil, err
	}
	results := make([]Result, len(r.participants))
	for i, p := range r.participants {
		results[i] = r.result(ctx, p)
		if r.explain != nil {
			r.explain(&results[i], p)
		}
	}
	return results, ctx.Err()
}

// drawReplicas draws by seed and hazard only, so a new experiment does not change other draws.
func (r *round) drawReplicas() {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(r.Hazard))
	random := rand.New(rand.NewPCG(uint64(r.seed), hash.Sum64())) //nolint:gosec // not a secret
	if r.twoNodes {
		// Replicas 1 and 3 write to node A, replica 2 writes to node B.
		r.on = [roles]int{holder: 2 * random.IntN(2), contender: 1, observer: 1}
	} else {
		copy(r.on[:], random.Perm(len(r.bed.Rig.Addresses().Replicas)))
	}
	r.on[successor] = r.on[contender]
	if r.sameReplica {
		r.on[contender] = r.on[holder]
	}
	r.subjects = slices.Clone(r.subjects)
	random.Shuffle(len(r.subjects), func(i, j int) { r.subjects[i], r.subjects[j] = r.subjects[j], r.subjects[i] })
}

func (r *round) stopHolders(ctx context.Context) error {
	if r.prepare != nil {
		if err := r.prepare(ctx, r); err != nil {
			return err
		}
	}
	if err := r.addProducts(ctx); err != nil {
		return err
	}
	if r.stocked != nil {
		if err := r.stocked(ctx, r); err != nil {
			return err
		}
	}
	r.send(ctx, holder, r.holderParams)
	return r.awaitStopped(ctx, holder)
}

// addProducts adds a product for each strategy, and arms the failpoints at which its holder stops.
func (r *round) addProducts(ctx context.Context) error {
	for _, s := range r.subjects {
		var err error
		if s.product, err = r.bed.addProduct(ctx, r.on[holder], pieces); err != nil {
			return err
		}
		p := &participant{Subject: s, stops: true}
		for part := range p.ended {
			p.ended[part] = make(chan struct{})
		}
		r.participants = append(r.participants, p)
		if r.soldBefore {
			if err := r.readOnce(ctx, s); err != nil {
				return err
			}
		}
		steps := []string{s.Card.stepFor(r.Hazard, s.Card.stepFor(r.ClaimedAs, r.step))}
		if r.thenAt != "" {
			steps = append(steps, r.thenAt)
		}
		for _, step := range steps {
			if err := r.bed.stop(ctx, r.on[holder], s, step); err != nil {
				return err
			}
		}
	}
	return r.bed.Rig.AwaitEven(ctx)
}

// readOnce lets both replicas read the product, by a request for more pieces than there are. The results leave it out.
func (r *round) readOnce(ctx context.Context, s Subject) error {
	for _, on := range []int{r.on[holder], r.on[contender]} {
		if err := r.readOnceOn(ctx, s, on); err != nil {
			return err
		}
	}
	r.began = r.bed.since()
	return nil
}

// readOnceOn lets a replica read a product.
func (r *round) readOnceOn(ctx context.Context, s Subject, on int) error {
	var op history.Op // a client of a cluster on trial may need several tries: some nodes of it do not answer
	if err := eventually(ctx, "an answer", func() bool {
		op = r.bed.buy(ctx, on, s, url.Values{"qty": {strconv.Itoa(pieces + 1)}})
		return op.Reason == history.SoldOut
	}); err != nil {
		return fmt.Errorf("%s: more pieces than there are: %s, want %s: %w", s.Name(), op.Reason, history.SoldOut, err)
	}
	return nil
}

func (r *round) send(ctx context.Context, part int, params url.Values) {
	for _, p := range r.participants {
		go r.buy(ctx, p, part, params)
	}
}

func (r *round) buy(ctx context.Context, p *participant, part int, params url.Values) {
	defer close(p.ended[part])
	p.ops[part] = r.bed.buy(ctx, r.on[part], p.Subject, params)
	// A client of Redis on trial may take a while to find a new master, and an error says nothing about its lock.
	patient := p.Card.onTrial() && part != observer && r.bed.Rig.Config().RedisTopology != rig.OneRedis
	for began := time.Now(); patient && p.ops[part].Reason == history.Unavailable && time.Since(began) < engineWait; {
		if sleep(ctx, engineWait/50) != nil {
			return
		}
		p.ops[part] = r.bed.buy(ctx, r.on[part], p.Subject, params)
	}
}

func (r *round) awaitStopped(ctx context.Context, part int) error {
	return eventually(ctx, "all requests stopped or answered", func() bool {
		stopped, err := r.bed.stopped(ctx, r.on[part])
		if err != nil {
			return false
		}
		for _, p := range r.participants {
			p.stopped[part] = stopped[p.key()]
			if p.stopped[part] == "" && !isClosed(p.ended[part]) {
				return false
			}
		}
		return true
	})
}

// execute goes on from the moment when all holders have stopped.
func (r *round) execute(ctx context.Context) error {
	r.span.From = r.bed.since()
	uncancelled := context.WithoutCancel(ctx)
	var heal fault.Heal = noHeal
	if r.inject != nil {
		undo, err := r.inject(ctx, r)
		if err != nil {
			if undo != nil {
				err = errors.Join(err, undo(uncancelled))
			}
			return fmt.Errorf("inject the fault: %w", err)
		}
		heal = undo
	}
	r.injectedAt = r.bed.since()
	err := r.contend(ctx)
	if err == nil && r.healLate {
		err = r.finish(ctx)
	}
	r.observe(uncancelled)
	if healed := heal(uncancelled); healed != nil {
		return errors.Join(err, fmt.Errorf("heal: %w", healed))
	}
	r.span.To = r.bed.since()
	if err == nil && !r.healLate {
		err = r.finish(ctx)
	}
	return err
}

func (r *round) finish(ctx context.Context) error {
	if err := r.bed.replica(r.on[holder]).ResumeAll(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if r.contenderStops != "" {
		if err := r.resumeContenders(ctx); err != nil {
			return err
		}
	}
	r.await(holder)
	r.await(contender)
	if r.after != nil {
		return r.after(ctx, r)
	}
	return nil
}

// resumeContenders resumes each contender as soon as its own holder has ended, because the
// contender's lease would expire in a longer wait. Before the contender resumes, an observer checks
// that the holder's release has not freed the contender's lock.
func (r *round) resumeContenders(ctx context.Context) error {
	var all errgroup.Group
	for _, p := range r.participants {
		all.Go(func() error {
			<-p.ended[holder]
			if r.probe {
				r.buy(ctx, p, observer, wait(500*time.Millisecond))
			}
			if p.stopped[contender] == "" {
				return nil
			}
			return r.bed.replica(r.on[contender]).Resume(context.WithoutCancel(ctx), p.stopped[contender])
		})
	}
	return all.Wait()
}

func (r *round) contend(ctx context.Context) error {
	if r.contenderStops != "" {
		for _, p := range r.participants {
			if err := r.bed.stop(ctx, r.on[contender], p.Subject, r.contenderStops); err != nil {
				return err
			}
		}
	}
	for _, p := range r.participants {
		params := r.contenderParams
		if p.Card.Locker && p.Card.Lease && !p.Card.Renews && r.unrenewed != nil {
			params = r.unrenewed
		}
		go r.buy(ctx, p, contender, params)
	}
	var beside sync.WaitGroup
	var err, failed error
	if r.meanwhile != nil {
		beside.Go(func() { failed = r.meanwhile(ctx, r) })
	}
	switch {
	case r.contenderStops != "":
		err = r.awaitStopped(ctx, contender)
	case r.contenderAt != "":
		err = r.awaitStep(ctx, contender, func(Card) string { return r.contenderAt })
	default:
		r.await(contender)
	}
	beside.Wait()
	return errors.Join(err, failed)
}

func (r *round) awaitStep(ctx context.Context, part int, step func(Card) string) error {
	for _, p := range r.participants {
		if err := eventually(ctx, p.Name()+" at "+step(p.Card), func() bool {
			return isClosed(p.ended[part]) || slices.ContainsFunc(r.bed.rec.eventsOf(p.key()), func(e history.Event) bool {
				return e.Replica == name(r.on[part]) && e.Owner != p.stopped[holder] && e.Step == step(p.Card)
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) sendAndAwait(ctx context.Context, part int, params url.Values) {
	r.send(ctx, part, params)
	r.await(part)
}

func (r *round) await(part int) {
	for _, p := range r.participants {
		<-p.ended[part]
	}
}

// never is for a holder that stops again, or ends.
func never() bool { return false }

// resumeToNext resumes the holder of a run with one strategy, and waits until it has stopped again or
// has ended, or until over returns true.
func (r *round) resumeToNext(ctx context.Context, over func() bool) error {
	p := r.participants[0]
	// Not ResumeAll, which removes the other failpoints.
	if err := r.bed.replica(r.on[holder]).Resume(ctx, p.stopped[holder]); err != nil {
		return err
	}
	return eventually(ctx, p.Name()+" at its next step", func() bool {
		stopped, err := r.bed.stopped(ctx, r.on[holder])
		return over() || isClosed(p.ended[holder]) || err == nil && stopped[p.key()] != ""
	})
}

func isClosed(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

func (r *round) result(ctx context.Context, p *participant) Result {
	var ops []history.Op
	for part := range p.ops {
		if isClosed(p.ended[part]) {
			ops = append(ops, p.ops[part])
		}
	}
	result := r.safe(p.Subject, pieces, ops)
	result.Recording.Events = slices.DeleteFunc(result.Recording.Events, func(e history.Event) bool { return e.At < r.began })
	result.NextGrantMS = nextGrant(result.Recording.Events, p.stopped[holder], r.injectedAt)
	countOn := r.on[contender]
	if r.twoNodes {
		countOn = r.on[holder]
	}
	stock, err := r.count(ctx, countOn, p.Subject, &result)
	if err != nil {
		result.Verdict, result.Why = api.Inconclusive, failure(err)
		return result
	}
	p.events = result.Recording.Events
	found := r.find(p, stock, result.Recording)
	result.Verdict, result.Invariant = found.verdict, found.invariant
	result.Why = api.Joined(result.Counts(), found.why, p.answers())
	r.unlessMissed(&result)
	return result
}

// unlessMissed takes the verdict back if no fault has landed: such a run shows nothing about the hazard.
func (r *round) unlessMissed(result *Result) {
	if r.missed != nil {
		result.Verdict, result.Invariant = api.Inconclusive, ""
		result.Why = api.Textf("The fault did not land: %v.", "故障没有生效：%v。", r.missed)
	}
}

func (r *round) find(p *participant, stock check.Conservation, rec history.Recording) finding {
	if stock.Verdict == api.Broken {
		return finding{api.Broken, Conservation, r.cause(p, rec.Events)}
	}
	if exclusion := check.Exclusion(rec); p.Card.Locker && !p.Fenced && exclusion.Verdict == api.Broken {
		return finding{api.Broken, MutualExclusion, exclusion.Why}
	}
	if fences := check.Fences(rec); fences.Verdict == api.Broken {
		return finding{api.Broken, FenceMonotonicity, fences.Why}
	}
	if p.stops && p.stopped[holder] == "" && (p.ops[holder].Outcome != history.OK || p.Card.onTrial()) {
		return *neverStopped()
	}
	if r.judge != nil {
		if found := r.judge(p); found != nil {
			return *found
		}
	}
	if next := p.ops[contender]; p.Card.onTrial() && next.Backend == p.Card.ID && !r.silences { // such as a program that starts slowly
		return finding{api.Inconclusive, "", api.Text{
			EN: "The program of the lock did not answer the contender, so nothing shows that the lock kept it out.",
			ZH: "锁的程序没有回答竞争者，所以看不出是不是锁挡住了它。",
		}}
	}
	return finding{api.Safe, "", api.Text{}}
}

func neverStopped() *finding {
	return &finding{api.Inconclusive, "", api.Text{EN: "The holder never reached its step.", ZH: "持锁者没有到达它的步骤。"}}
}

// stalled is the finding that the lock was not granted in time.
func stalled(why api.Text) *finding { return &finding{api.Stalled, Progress, why} }

// mustSell returns a judge. The judge returns f if the request of one of these roles did not sell.
func mustSell(f *finding, parts ...int) func(*participant) *finding {
	return func(p *participant) *finding {
		for _, part := range parts {
			if p.ops[part].Outcome != history.OK {
				return f
			}
		}
		return nil
	}
}

// mustSellInTime returns a judge as mustSell does, for a contender that waits for grantBound. A grant at the end of its
// wait is a last try: nothing woke it.
func mustSellInTime(f *finding) func(*participant) *finding {
	return func(p *participant) *finding {
		if p.ops[contender].Waited >= grantBound {
			return f
		}
		return mustSell(f, contender)(p)
	}
}

// nextGrant returns the milliseconds from the fault until another owner got the lock, or 0.
func nextGrant(events []history.Event, holder string, since time.Duration) float64 {
	for _, e := range events {
		if e.Step == "granted" && e.Owner != holder && e.At >= since {
			return float64((e.At - since).Microseconds()) / 1000
		}
	}
	return 0
}
