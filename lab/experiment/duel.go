package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	victim = iota
	rival
	third
)

// duel is the shape of most experiments. A victim is held up at a step; something
// strikes while it is there; a rival asks for the same goods; the victim wakes up and
// does what it was about to do. All strategies do this at the same time, each with a
// product of its own, so one fault serves them all.
type duel struct {
	number int
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
	prepare func(ctx context.Context, f *fight) error
	// fenced is what a fence claims about the hazard.
	fenced Claim
	// lateHeal: the victims wake up while the fault is still there.
	lateHeal bool
	// victim's and rival's parameters.
	victim, rival func(Card) url.Values
	// strike happens while all victims are held up. It returns how to end it.
	strike func(ctx context.Context, f *fight) (heal func(context.Context) error, err error)
	// rivalAt: the victims wake up as soon as their rivals have got there, or have
	// their answer. Without it they sleep until every rival has its answer.
	rivalAt string
	// rivalStops holds the rival up at that step; the victim then ends first.
	rivalStops string
	// intruder: before the rival goes on, a third one tries whether the rival's lock is
	// still the rival's.
	intruder bool
	// meanwhile goes on beside the rivals.
	meanwhile func(ctx context.Context, f *fight) error
	// judge has a verdict of the hazard's own, or none.
	judge func(p *player) *finding
}

// fight is a duel under way.
type fight struct {
	duel
	class   *Class
	on      [3]int // the replica of each part
	players []*player
	span    history.Span
	struck  time.Duration
}

// player is one strategy's fight.
type player struct {
	Subject
	key   string
	owner string // the victim's
	rival string // the rival's, where it is stopped
	ops   [3]history.Op
	ended [3]chan struct{}
}

// finding is what a run showed.
type finding struct {
	verdict   Verdict
	invariant string
	why       string
}

func (d duel) run(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error) {
	draw := rand.New(rand.NewPCG(uint64(seed), uint64(d.number))) //nolint:gosec // not a secret
	f := &fight{duel: d, class: c}
	copy(f.on[:], draw.Perm(len(c.Rig.Addresses().Replicas)))
	if d.sameReplica {
		f.on[rival] = f.on[victim]
	}
	subjects = slices.Clone(subjects)
	draw.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	if err := f.begin(ctx, subjects); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	if err := f.fight(ctx); err != nil {
		return nil, err
	}
	cells := make([]Cell, len(f.players))
	for i, p := range f.players {
		cells[i] = f.cell(ctx, p, seed)
	}
	return cells, ctx.Err()
}

// begin brings all victims to their step.
func (f *fight) begin(ctx context.Context, subjects []Subject) error {
	c := f.class
	if f.fresh {
		for _, n := range []int{f.on[victim], f.on[rival]} {
			if err := c.restart(ctx, n); err != nil {
				return err
			}
		}
	}
	if f.prepare != nil {
		if err := f.prepare(ctx, f); err != nil {
			return err
		}
	}
	if err := f.offer(ctx, subjects, f.step); err != nil {
		return err
	}
	f.send(ctx, victim, f.victim)
	return f.arrive(ctx, victim, func(p *player, owner string) { p.owner = owner })
}

// offer puts everybody's goods on the shelf, in each database, and arms the victims' failpoints: at the
// step, unless a card names another.
func (f *fight) offer(ctx context.Context, subjects []Subject, step string) error {
	for _, s := range subjects {
		product, err := f.class.stocked(ctx, f.on[victim], pieces)
		if err != nil {
			return err
		}
		s.product = product
		p := &player{Subject: s, key: replica.Key(product)}
		for part := range p.ended {
			p.ended[part] = make(chan struct{})
		}
		f.players = append(f.players, p)
		if err := f.class.stop(ctx, f.on[victim], s, s.Card.stepFor(f.hazard, step)); err != nil {
			return err
		}
	}
	return f.class.Rig.AwaitEven(ctx) //nolint:wrapcheck // says all
}

// send has all players of a part ask for their goods.
func (f *fight) send(ctx context.Context, part int, params func(Card) url.Values) {
	for _, p := range f.players {
		var query url.Values
		if params != nil {
			query = params(p.Card)
		}
		go func() {
			defer close(p.ended[part])
			p.ops[part] = f.class.buy(ctx, f.on[part], p.Subject, query)
		}()
	}
}

// arrive waits until everyone of the part has been stopped, or has an answer.
func (f *fight) arrive(ctx context.Context, part int, found func(p *player, owner string)) error {
	return eventually(ctx, "all are at their step", func() bool {
		stopped, err := f.class.stopped(ctx, f.on[part])
		if err != nil {
			return false
		}
		for _, p := range f.players {
			owner := stopped[p.key]
			if owner == "" && !over(p.ended[part]) {
				return false
			}
			found(p, owner)
		}
		return true
	})
}

// fight is all that happens from the moment when the victims are at their step.
func (f *fight) fight(ctx context.Context) error {
	c := f.class
	f.span = history.Span{What: f.hazard, Who: name(f.on[victim]), From: c.since()}
	heal := func(context.Context) error { return nil }
	if f.strike != nil {
		undo, err := f.strike(ctx, f)
		if err != nil {
			if undo != nil {
				err = errors.Join(err, undo(context.WithoutCancel(ctx)))
			}
			return fmt.Errorf("strike: %w", err)
		}
		heal = undo
	}
	f.struck = c.since()
	err := f.challenge(ctx)
	calm := context.WithoutCancel(ctx)
	if !f.lateHeal || err != nil {
		if healed := heal(calm); healed != nil {
			return errors.Join(err, fmt.Errorf("heal: %w", healed))
		}
		f.span.To = c.since()
	}
	if err != nil {
		return err
	}
	if err := c.replica(f.on[victim]).GoOn(calm); err != nil {
		return err
	}
	if f.lateHeal {
		f.wait(victim)
		f.wait(rival)
		if err := heal(calm); err != nil {
			return fmt.Errorf("heal: %w", err)
		}
		f.span.To = c.since()
	}
	if f.rivalStops != "" {
		if err := f.rivalsGoOn(ctx); err != nil {
			return err
		}
	}
	f.wait(victim)
	f.wait(rival)
	return nil
}

// rivalsGoOn lets each stopped rival go on as soon as its victim has ended: each for itself,
// for the rivals' leases run. An intruder comes in between: the victim has released what it
// thought was its own, and is the rival's lock still there?
func (f *fight) rivalsGoOn(ctx context.Context) error {
	var all errgroup.Group
	for _, p := range f.players {
		all.Go(func() error {
			<-p.ended[victim]
			if f.intruder {
				p.ops[third] = f.class.buy(ctx, f.on[third], p.Subject, url.Values{"wait": {"500ms"}})
				close(p.ended[third])
			}
			if p.rival == "" {
				return nil
			}
			return f.class.replica(f.on[rival]).LetGo(context.WithoutCancel(ctx), p.rival)
		})
	}
	return all.Wait()
}

// challenge lets the rivals try, for as long as the victims are to sleep.
func (f *fight) challenge(ctx context.Context) error {
	if f.rivalStops != "" {
		for _, p := range f.players {
			if err := f.class.stop(ctx, f.on[rival], p.Subject, f.rivalStops); err != nil {
				return err
			}
		}
	}
	f.send(ctx, rival, f.rival)
	var beside sync.WaitGroup
	var failed error
	if f.meanwhile != nil {
		beside.Go(func() { failed = f.meanwhile(ctx, f) })
	}
	defer beside.Wait()
	switch {
	case f.rivalStops != "":
		return f.arrive(ctx, rival, func(p *player, owner string) { p.rival = owner })
	case f.rivalAt != "":
		for _, p := range f.players {
			if err := f.reached(ctx, p, rival, f.rivalAt); err != nil {
				return err
			}
		}
	default:
		f.wait(rival)
	}
	beside.Wait()
	return failed
}

// reached waits until the player of the part took one of the steps, or has its answer.
func (f *fight) reached(ctx context.Context, p *player, part int, steps ...string) error {
	return eventually(ctx, p.Name()+" at "+strings.Join(steps, " or "), func() bool {
		return over(p.ended[part]) || slices.ContainsFunc(f.class.rec.of(p.key), func(e history.Event) bool {
			return e.Replica == name(f.on[part]) && e.Owner != p.owner && slices.Contains(steps, e.Step)
		})
	})
}

func (f *fight) wait(part int) {
	for _, p := range f.players {
		<-p.ended[part]
	}
}

func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// cell judges what is left when all is over.
func (f *fight) cell(ctx context.Context, p *player, seed int64) Cell {
	cell := Cell{Number: f.number, Hazard: f.hazard, Strategy: p.Card.ID, Fenced: p.Fenced, Seed: seed, Claim: p.Card.Claim(cmp.Or(f.claimedAs, f.hazard))}
	if p.Fenced { // what a fence is for, no card need say
		cell.Claim = f.fenced
	}
	left, err := f.class.replica(f.on[rival]).Count(ctx, p.Card.ID, p.product)
	if err != nil {
		cell.Verdict, cell.Why = Unknown, err.Error()
		return cell
	}
	var ops []history.Op
	for part := range p.ops {
		if over(p.ended[part]) {
			ops = append(ops, p.ops[part])
		}
	}
	cell.Recording = history.Recording{Start: f.class.rec.start, Stock: pieces, Ops: ops, Events: f.class.rec.of(p.key), Spans: []history.Span{f.span}}
	cell.NextGrantMS = nextGrant(cell.Recording.Events, p.owner, f.struck)
	stock := check.Stock(ops, pieces, left)
	cell.Sold, cell.Taken = stock.Sold, pieces-left
	found := f.find(p, stock, cell.Recording)
	cell.Verdict, cell.Invariant = found.verdict, found.invariant
	cell.Why = found.why + "victim: " + answer(p.ops[victim]) + "; rival: " + answer(p.ops[rival])
	return cell
}

func (f *fight) find(p *player, stock check.I1, rec history.Recording) finding {
	if stock.Verdict == check.Violated {
		return finding{Violated, "I1", fmt.Sprintf("%d sold, %d left the row; ", stock.Sold, stock.Initial-stock.Remaining)}
	}
	if i2 := check.Exclusion(rec); p.Card.Locker && !p.Fenced && i2.Verdict == check.Violated {
		return finding{Violated, "I2", i2.Why + "; "}
	}
	if i3 := check.Fences(rec); i3.Verdict == check.Violated {
		return finding{Violated, "I3", i3.Why + "; "}
	}
	if p.owner == "" && p.ops[victim].Outcome != history.OK {
		return finding{Unknown, "", "the victim never came to its step; "}
	}
	if f.judge != nil {
		if found := f.judge(p); found != nil {
			return *found
		}
	}
	return finding{Safe, "", ""}
}

// nextGrant is how long after the fault somebody else got the lock, 0 if nobody did.
func nextGrant(events []history.Event, victim string, since time.Duration) float64 {
	for _, e := range events {
		if e.Step == "granted" && e.Owner != victim && e.At >= since {
			return float64((e.At - since).Microseconds()) / 1000
		}
	}
	return 0
}

// answer is what a customer was told, in few words.
func answer(op history.Op) string {
	detail := strings.ReplaceAll(op.Detail, "\n", "; ")
	if len(detail) > 100 {
		detail = detail[:100] + "…"
	}
	return strings.TrimSuffix(strings.TrimSpace(op.Reason+": "+detail), ":")
}
