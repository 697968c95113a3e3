package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/replica"
)

// pieces are on the shelf of each duel.
const pieces = 10

// The parts that are played, each on a replica of its own.
const (
	holder = iota
	contender
	observer
)

// duel is the shape of most experiments. A victim is held up at a step; something
// strikes while it is there; a rival asks for the same goods; the victim wakes up and
// does what it was about to do. All strategies do this at the same time, each with a
// product of its own, so one fault serves them all.
type schedule struct {
	hazard string
	// claimedAs is the hazard under whose name cards speak of this one; empty: its own.
	claimedAs string
	// step is where the victim is held up, unless its card names another.
	step string
	// sameReplica puts the rival beside the victim.
	sameReplica bool
	// fresh replicas begin to count at the same number.
	fresh bool
	// prepare comes before everything else.
	prepare func(ctx context.Context, r *run) error
	// fenced is what a fence claims about the hazard.
	fenced Claim
	// lateHeal: the victims wake up while the fault is still there.
	healLate bool
	// victim's and rival's parameters.
	holderParams, contenderParams func(Card) url.Values
	// strike happens while all victims are held up. It returns how to end it.
	inject func(ctx context.Context, r *run) (heal func(context.Context) error, err error)
	// rivalAt: the victims wake up as soon as their rivals have got there, or have
	// their answer. Without it they sleep until every rival has its answer.
	contenderAt string
	// rivalStops holds the rival up at that step; the victim then ends first.
	contenderStops string
	// intruder: before the rival goes on, a third one tries whether the rival's lock is
	// still the rival's.
	probe bool
	// meanwhile goes on beside the rivals.
	meanwhile func(ctx context.Context, r *run) error
	// judge has a verdict of the hazard's own, or none.
	judge func(p *participant) *finding
}

// fight is a duel under way.
type run struct {
	schedule
	bed          *Testbed
	on           [3]int // the replica of each part
	participants []*participant
	span         history.Span
	injectedAt   time.Duration
}

// player is one strategy's fight.
type participant struct {
	Subject
	key         string
	holderID    string // the victim's
	contenderID string // the rival's, where it is stopped
	ops         [3]history.Op
	ended       [3]chan struct{}
}

// finding is what a run showed.
type finding struct {
	verdict   Verdict
	invariant string
	why       string
}

func (sched schedule) run(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) ([]Result, error) {
	random := draw(seed, sched.hazard)
	r := &run{schedule: sched, bed: bed}
	copy(r.on[:], random.Perm(len(bed.Rig.Addresses().Replicas)))
	if sched.sameReplica {
		r.on[contender] = r.on[holder]
	}
	subjects = slices.Clone(subjects)
	random.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	if err := r.stopHolders(ctx, subjects); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	if err := r.execute(ctx); err != nil {
		return nil, err
	}
	results := make([]Result, len(r.participants))
	for i, p := range r.participants {
		results[i] = r.result(ctx, p, seed)
	}
	return results, ctx.Err()
}

// begin brings all victims to their step.
func (r *run) stopHolders(ctx context.Context, subjects []Subject) error {
	bed := r.bed
	if r.fresh {
		for _, n := range []int{r.on[holder], r.on[contender]} {
			if err := bed.restart(ctx, n); err != nil {
				return err
			}
		}
	}
	if r.prepare != nil {
		if err := r.prepare(ctx, r); err != nil {
			return err
		}
	}
	if err := r.addProducts(ctx, subjects, r.step); err != nil {
		return err
	}
	r.send(ctx, holder, r.holderParams)
	return r.awaitStopped(ctx, holder, func(p *participant, owner string) { p.holderID = owner })
}

// offer puts everybody's goods on the shelf, in each database, and arms the victims' failpoints: at the
// step, unless a card names another.
func (r *run) addProducts(ctx context.Context, subjects []Subject, step string) error {
	for _, s := range subjects {
		product, err := r.bed.addProduct(ctx, r.on[holder], pieces)
		if err != nil {
			return err
		}
		s.product = product
		p := &participant{Subject: s, key: replica.Key(product)}
		for part := range p.ended {
			p.ended[part] = make(chan struct{})
		}
		r.participants = append(r.participants, p)
		if err := r.bed.stop(ctx, r.on[holder], s, s.Card.stepFor(r.hazard, step)); err != nil {
			return err
		}
	}
	return r.bed.Rig.AwaitEven(ctx)
}

// send has all players of a part ask for their goods.
func (r *run) send(ctx context.Context, part int, params func(Card) url.Values) {
	for _, p := range r.participants {
		var query url.Values
		if params != nil {
			query = params(p.Card)
		}
		go func() {
			defer close(p.ended[part])
			p.ops[part] = r.bed.buy(ctx, r.on[part], p.Subject, query)
		}()
	}
}

// arrive waits until everyone of the part has been stopped, or has an answer.
func (r *run) awaitStopped(ctx context.Context, part int, found func(p *participant, owner string)) error {
	return eventually(ctx, "all are at their step", func() bool {
		stopped, err := r.bed.stopped(ctx, r.on[part])
		if err != nil {
			return false
		}
		for _, p := range r.participants {
			owner := stopped[p.key]
			if owner == "" && !isClosed(p.ended[part]) {
				return false
			}
			found(p, owner)
		}
		return true
	})
}

// fight is all that happens from the moment when the victims are at their step.
func (r *run) execute(ctx context.Context) error {
	bed := r.bed
	r.span = history.Span{What: r.hazard, Who: name(r.on[holder]), From: bed.since()}
	heal := func(context.Context) error { return nil }
	if r.inject != nil {
		undo, err := r.inject(ctx, r)
		if err != nil {
			if undo != nil {
				err = errors.Join(err, undo(context.WithoutCancel(ctx)))
			}
			return fmt.Errorf("strike: %w", err)
		}
		heal = undo
	}
	r.injectedAt = bed.since()
	err := r.contend(ctx)
	uncancelled := context.WithoutCancel(ctx)
	if !r.healLate || err != nil {
		if healed := heal(uncancelled); healed != nil {
			return errors.Join(err, fmt.Errorf("heal: %w", healed))
		}
		r.span.To = bed.since()
	}
	if err != nil {
		return err
	}
	if err := bed.replica(r.on[holder]).GoOn(uncancelled); err != nil {
		return err
	}
	if r.healLate {
		r.await(holder)
		r.await(contender)
		if err := heal(uncancelled); err != nil {
			return fmt.Errorf("heal: %w", err)
		}
		r.span.To = bed.since()
	}
	if r.contenderStops != "" {
		if err := r.resumeContenders(ctx); err != nil {
			return err
		}
	}
	r.await(holder)
	r.await(contender)
	return nil
}

// rivalsGoOn lets each stopped rival go on as soon as its victim has ended: each for itself,
// for the rivals' leases run. An intruder comes in between: the victim has released what it
// thought was its own, and is the rival's lock still there?
func (r *run) resumeContenders(ctx context.Context) error {
	var all errgroup.Group
	for _, p := range r.participants {
		all.Go(func() error {
			<-p.ended[holder]
			if r.probe {
				p.ops[observer] = r.bed.buy(ctx, r.on[observer], p.Subject, url.Values{"wait": {"500ms"}})
				close(p.ended[observer])
			}
			if p.contenderID == "" {
				return nil
			}
			return r.bed.replica(r.on[contender]).LetGo(context.WithoutCancel(ctx), p.contenderID)
		})
	}
	return all.Wait()
}

// challenge lets the rivals try, for as long as the victims are to sleep.
func (r *run) contend(ctx context.Context) error {
	if r.contenderStops != "" {
		for _, p := range r.participants {
			if err := r.bed.stop(ctx, r.on[contender], p.Subject, r.contenderStops); err != nil {
				return err
			}
		}
	}
	r.send(ctx, contender, r.contenderParams)
	var beside sync.WaitGroup
	var failed error
	if r.meanwhile != nil {
		beside.Go(func() { failed = r.meanwhile(ctx, r) })
	}
	defer beside.Wait()
	switch {
	case r.contenderStops != "":
		return r.awaitStopped(ctx, contender, func(p *participant, owner string) { p.contenderID = owner })
	case r.contenderAt != "":
		for _, p := range r.participants {
			if err := r.awaitStep(ctx, p, contender, r.contenderAt); err != nil {
				return err
			}
		}
	default:
		r.await(contender)
	}
	beside.Wait()
	return failed
}

// reached waits until the player of the part took one of the steps, or has its answer.
func (r *run) awaitStep(ctx context.Context, p *participant, part int, steps ...string) error {
	return eventually(ctx, p.Name()+" at "+strings.Join(steps, " or "), func() bool {
		return isClosed(p.ended[part]) || slices.ContainsFunc(r.bed.rec.eventsOf(p.key), func(e history.Event) bool {
			return e.Replica == name(r.on[part]) && e.Owner != p.holderID && slices.Contains(steps, e.Step)
		})
	})
}

func (r *run) await(part int) {
	for _, p := range r.participants {
		<-p.ended[part]
	}
}

func isClosed(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// cell judges what is left when all is over.
func (r *run) result(ctx context.Context, p *participant, seed int64) Result {
	result := Result{Hazard: r.hazard, Strategy: p.Card.ID, Fenced: p.Fenced, Seed: seed, Claim: p.Card.Claim(cmp.Or(r.claimedAs, r.hazard))}
	if p.Fenced { // what a fence is for, no card need say
		result.Claim = r.fenced
	}
	left, err := r.bed.replica(r.on[contender]).Count(ctx, p.Card.ID, p.product)
	if err != nil {
		result.Verdict, result.Why = Unknown, err.Error()
		return result
	}
	var ops []history.Op
	for part := range p.ops {
		if isClosed(p.ended[part]) {
			ops = append(ops, p.ops[part])
		}
	}
	result.Recording = history.Recording{Start: r.bed.rec.start, Stock: pieces, Ops: ops, Events: r.bed.rec.eventsOf(p.key), Spans: []history.Span{r.span}}
	result.NextGrantMS = nextGrant(result.Recording.Events, p.holderID, r.injectedAt)
	stock := check.Stock(ops, pieces, left)
	result.Sold, result.Taken = stock.Sold, pieces-left
	found := r.find(p, stock, result.Recording)
	result.Verdict, result.Invariant = found.verdict, found.invariant
	result.Why = found.why + "victim: " + Answer(p.ops[holder]) + "; rival: " + Answer(p.ops[contender])
	return result
}

func (r *run) find(p *participant, stock check.Conservation, rec history.Recording) finding {
	if stock.Verdict == check.Broken {
		return finding{Broken, Conservation, fmt.Sprintf("%d sold, %d left the row; ", stock.Sold, stock.Initial-stock.Remaining)}
	}
	if i2 := check.Exclusion(rec); p.Card.Locker && !p.Fenced && i2.Verdict == check.Broken {
		return finding{Broken, MutualExclusion, i2.Why + "; "}
	}
	if i3 := check.Fences(rec); i3.Verdict == check.Broken {
		return finding{Broken, FenceMonotonicity, i3.Why + "; "}
	}
	if p.holderID == "" && p.ops[holder].Outcome != history.OK {
		return finding{Unknown, "", "the victim never came to its step; "}
	}
	if r.judge != nil {
		if found := r.judge(p); found != nil {
			return *found
		}
	}
	return finding{Safe, "", ""}
}

// nextGrant is how long after the fault somebody else got the lock, 0 if nobody did.
func nextGrant(events []history.Event, holder string, since time.Duration) float64 {
	for _, e := range events {
		if e.Step == "granted" && e.Owner != holder && e.At >= since {
			return float64((e.At - since).Microseconds()) / 1000
		}
	}
	return 0
}

// answer is what a customer was told, in few words.
func Answer(op history.Op) string {
	detail := strings.ReplaceAll(op.Detail, "\n", "; ")
	if len(detail) > 100 {
		detail = detail[:100] + "…"
	}
	return strings.TrimSuffix(strings.TrimSpace(op.Reason+": "+detail), ":")
}

// draw returns the random numbers of one experiment. They depend on the seed and on the
// hazard's name only, so a new experiment does not change the runs of the others.
func draw(seed int64, hazard string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(hazard))
	return rand.New(rand.NewPCG(uint64(seed), hash.Sum64())) //nolint:gosec // not a secret
}
