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

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// pieces is the stock of each product at the start of a run.
const pieces = 10

// The parts of a run, each on a replica of its own.
const (
	holder = iota
	contender
	observer
)

// schedule describes most experiments. The holder stops at a step. A fault is injected. The
// contender requests the same product. The holder resumes and does what it was about to do.
// All strategies do this at the same time, each with its own product, so that one fault
// serves them all.
type schedule struct {
	hazard string
	// claimedAs is the hazard whose claim applies, if that is another one.
	claimedAs string
	// step is where the holder stops, unless its card names another.
	step string
	// sameReplica sends the contender to the holder's replica.
	sameReplica bool
	// fresh restarts the replicas first, so that both begin to count at the same number.
	fresh bool
	// prepare runs before everything else.
	prepare func(ctx context.Context, r *run) error
	// fenced is the claim of the fence about the hazard.
	fenced Claim
	// healLate resumes the holders before the fault ends.
	healLate bool
	// Parameters of the requests.
	holderParams, contenderParams func(Card) url.Values
	// inject injects the fault while all holders are stopped, and returns how to end it.
	inject func(ctx context.Context, r *run) (heal func(context.Context) error, err error)
	// contenderAt is the step at which a contender lets its holder resume. Without it the
	// holders resume when every contender has its answer.
	contenderAt string
	// contenderStops is the step at which the contender stops until the holder has ended.
	contenderStops string
	// probe sends an observer's request before the contender resumes: it must not get the
	// lock that the contender holds.
	probe bool
	// meanwhile runs beside the contenders.
	meanwhile func(ctx context.Context, r *run) error
	// judge returns the verdict of this hazard, or nil if its own criterion is met.
	judge func(p *participant) *finding
}

// run is a schedule in progress.
type run struct {
	schedule
	bed          *Testbed
	on           [3]int // the replica of each part
	participants []*participant
	span         history.Span
	injectedAt   time.Duration
}

// participant is one strategy in a run.
type participant struct {
	Subject
	key         string
	holderID    string // of the holder's request
	contenderID string // of the contender's request, if it is stopped
	ops         [3]history.Op
	ended       [3]chan struct{}
}

// finding is the verdict of a run and its reason.
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
		return nil, fmt.Errorf("stop the holders: %w", err)
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

// stopHolders brings every holder to its step.
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

// addProducts adds a product for each subject, in each database, and arms the failpoints of
// the holders at the step, unless a card names another.
func (r *run) addProducts(ctx context.Context, subjects []Subject, step string) error {
	for _, s := range subjects {
		product, err := r.bed.addProduct(ctx, r.on[holder], pieces)
		if err != nil {
			return err
		}
		s.product = product
		p := &participant{Subject: s, key: api.Key(product)}
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

// send sends the requests of one part, for all participants.
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

// awaitStopped waits until every request of the part is stopped or answered.
func (r *run) awaitStopped(ctx context.Context, part int, found func(p *participant, owner string)) error {
	return eventually(ctx, "all requests stopped or answered", func() bool {
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

// execute does everything from the moment when the holders are at their step.
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
			return fmt.Errorf("inject the fault: %w", err)
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
	if err := bed.replica(r.on[holder]).ResumeAll(uncancelled); err != nil {
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

// resumeContenders resumes each stopped contender as soon as its holder has ended. It does
// not wait for the other participants: the leases of the contenders are running. The observer
// comes in between: the holder has released its lock, and must not have released the
// contender's.
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
			return r.bed.replica(r.on[contender]).Resume(context.WithoutCancel(ctx), p.contenderID)
		})
	}
	return all.Wait()
}

// contend runs the contenders for as long as the holders are stopped.
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

// awaitStep waits until the request of the part took one of the steps, or is answered.
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

// result judges the run of one participant.
func (r *run) result(ctx context.Context, p *participant, seed int64) Result {
	result := Result{Hazard: r.hazard, Strategy: p.Card.ID, Fenced: p.Fenced, Seed: seed, Claim: p.Card.Claim(cmp.Or(r.claimedAs, r.hazard))}
	if p.Fenced {
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
	result.Why = found.why + "holder: " + Answer(p.ops[holder]) + "; contender: " + Answer(p.ops[contender])
	return result
}

func (r *run) find(p *participant, stock check.Conservation, rec history.Recording) finding {
	if stock.Verdict == check.Broken {
		return finding{Broken, Conservation, fmt.Sprintf("%d sold, %d taken from stock; ", stock.Sold, stock.Initial-stock.Remaining)}
	}
	if exclusion := check.Exclusion(rec); p.Card.Locker && !p.Fenced && exclusion.Verdict == check.Broken {
		return finding{Broken, MutualExclusion, exclusion.Why + "; "}
	}
	if fences := check.Fences(rec); fences.Verdict == check.Broken {
		return finding{Broken, FenceMonotonicity, fences.Why + "; "}
	}
	if p.holderID == "" && p.ops[holder].Outcome != history.OK {
		return finding{Unknown, "", "the holder never reached its step; "}
	}
	if r.judge != nil {
		if found := r.judge(p); found != nil {
			return *found
		}
	}
	return finding{Safe, "", ""}
}

// nextGrant returns the milliseconds from the fault until another request acquired the
// lock, or 0 if none did.
func nextGrant(events []history.Event, holder string, since time.Duration) float64 {
	for _, e := range events {
		if e.Step == "granted" && e.Owner != holder && e.At >= since {
			return float64((e.At - since).Microseconds()) / 1000
		}
	}
	return 0
}

// Answer returns the answer to a request in a few words.
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
