package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
)

// pieces are on the shelf of each duel.
const pieces = 10

// duel is the shape of most experiments. A victim on one replica is held up at a
// step; something strikes while it is there; a rival on another replica asks for the
// same goods; the victim wakes up and does what it was about to do. All strategies do
// this at the same time, each with a product of its own.
type duel struct {
	number int
	hazard string
	// step is where the victim is held up; stepFor has the last word.
	step string
	// sameReplica puts the rival beside the victim.
	sameReplica bool
	// victim's and rival's parameters.
	victim, rival func(Card) url.Values
	// strike happens while all victims are held up. It returns how to end it.
	strike func(ctx context.Context, c *Class, victims int) (heal func(context.Context) error, err error)
	// gone: the victim never comes back, so the next grant must come without it.
	gone bool
}

// player is one strategy's part in a duel.
type player struct {
	Subject
	key     string
	owner   string // the victim's
	ops     [2]history.Op
	ended   [2]chan struct{}
	problem error
}

const (
	victim = iota
	rival
)

func (d duel) run(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error) {
	draw := rand.New(rand.NewPCG(uint64(seed), uint64(d.number))) //nolint:gosec // not a secret
	order := draw.Perm(len(c.Rig.Addresses().Replicas))
	on := [2]int{order[0], order[1]}
	if d.sameReplica {
		on[rival] = on[victim]
	}
	draw.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })

	players, err := d.begin(ctx, c, subjects, on[victim])
	if err != nil {
		return nil, err
	}
	span := history.Span{What: d.hazard, Who: name(on[victim]), From: c.since()}
	heal := func(context.Context) error { return nil }
	if d.strike != nil {
		if heal, err = d.strike(ctx, c, on[victim]); err != nil {
			return nil, fmt.Errorf("%s: %w", d.hazard, err)
		}
	}
	struck := c.since()
	if d.gone {
		span.What = "killed: " + d.hazard
	}
	d.challenge(ctx, c, players, on[rival])
	healed := heal(context.WithoutCancel(ctx))
	span.To = c.since()
	if err := c.goOn(context.WithoutCancel(ctx), on[victim]); err != nil && !d.gone {
		return nil, err
	}
	for _, p := range players {
		<-p.ended[victim]
	}
	if healed != nil {
		return nil, fmt.Errorf("%s, healing: %w", d.hazard, healed)
	}
	cells := make([]Cell, len(players))
	for i, p := range players {
		cells[i] = d.judge(ctx, c, p, on[rival], seed, struck, span)
	}
	return cells, ctx.Err()
}

// begin brings all victims to their step.
func (d duel) begin(ctx context.Context, c *Class, subjects []Subject, on int) ([]*player, error) {
	players := make([]*player, len(subjects))
	for i, s := range subjects {
		product, err := c.stocked(ctx, on, pieces)
		if err != nil {
			return nil, err
		}
		s.product = product
		p := &player{Subject: s, key: fmt.Sprintf("stock:%d", product)}
		p.ended = [2]chan struct{}{make(chan struct{}), make(chan struct{})}
		players[i] = p
		if err := c.stop(ctx, on, s, s.Card.stepFor(d.hazard, d.step)); err != nil {
			return nil, err
		}
	}
	for _, p := range players {
		go func() {
			defer close(p.ended[victim])
			p.ops[victim] = c.buy(ctx, on, p.Subject, d.params(d.victim, p.Card))
		}()
	}
	return players, eventually(ctx, "the victims are at their step", func() bool {
		stopped, err := c.stopped(ctx, on)
		if err != nil {
			return false
		}
		waiting := 0
		for _, p := range players {
			if p.owner = stopped[p.key]; p.owner == "" && !over(p.ended[victim]) {
				waiting++
			}
		}
		return waiting == 0
	})
}

// challenge lets the rivals try, and returns when each of them has an answer.
func (d duel) challenge(ctx context.Context, c *Class, players []*player, on int) {
	var all sync.WaitGroup
	for _, p := range players {
		all.Go(func() {
			defer close(p.ended[rival])
			p.ops[rival] = c.buy(ctx, on, p.Subject, d.params(d.rival, p.Card))
		})
	}
	all.Wait()
}

func (duel) params(of func(Card) url.Values, card Card) url.Values {
	if of == nil {
		return nil
	}
	return of(card)
}

func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// judge looks at what is left when all is over.
func (d duel) judge(ctx context.Context, c *Class, p *player, through int, seed int64, struck time.Duration, span history.Span) Cell {
	cell := Cell{Number: d.number, Hazard: d.hazard, Strategy: p.Card.ID, Fenced: p.Fenced, Seed: seed, Claim: p.Card.Claim(d.hazard)}
	if p.Fenced { // what a fence is for, no card need say
		cell.Claim = Protects
	}
	left, err := c.remaining(ctx, through, p.Card.ID, p.product)
	if err != nil {
		cell.Verdict, cell.Why = Unknown, err.Error()
		return cell
	}
	cell.Recording = history.Recording{Start: c.rec.start, Ops: p.ops[:], Events: c.rec.of(p.key), Spans: []history.Span{span}}
	stock := check.Stock(p.ops[:], pieces, left)
	cell.Sold, cell.Taken = stock.Sold, pieces-left
	cell.NextGrantMS = nextGrant(cell.Recording.Events, p.owner, struck)
	told := fmt.Sprintf("victim: %s; rival: %s", answer(p.ops[victim]), answer(p.ops[rival]))
	switch {
	case stock.Verdict == check.Violated:
		cell.Verdict, cell.Invariant = Violated, "I1"
		cell.Why = fmt.Sprintf("%d sold, %d left the row; %s", stock.Sold, cell.Taken, told)
	case p.owner == "" && p.ops[victim].Outcome != history.OK:
		cell.Verdict, cell.Why = Unknown, "the victim never came to its step; "+told
	case d.hazard == "nesting" && p.ops[victim].Outcome != history.OK:
		cell.Verdict, cell.Invariant = Stalled, "I4"
		cell.Why = "the owner waited for itself; " + told
	case d.gone && p.ops[rival].Outcome != history.OK:
		cell.Verdict, cell.Invariant = Stalled, "I4"
		cell.Why = fmt.Sprintf("nobody got the lock within %v after its holder had died; %s", bound, told)
	default:
		cell.Verdict, cell.Why = Safe, told
	}
	return cell
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
	detail := op.Detail
	if len(detail) > 100 {
		detail = detail[:100] + "…"
	}
	return strings.TrimSuffix(strings.TrimSpace(op.Reason+": "+detail), ":")
}
