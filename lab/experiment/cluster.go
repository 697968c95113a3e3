package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"oversell/lab/history"
	"oversell/lab/rig"
)

// galera has the victim and the rival write to two nodes of one cluster (tutorial 1.6.3:
// locks fail in a cluster). A node does not tell the other of its row locks, but they
// agree at each commit: whoever comes second is undone, error 1213. What is committed on
// one reaches the other within milliseconds, which it is given here.
func galera() Experiment {
	p := pair{duel: duel{number: 23, hazard: "galera"}, database: rig.Galera}
	return p.experiment("two nodes of a Galera cluster", "a row lock on one node, undone by the other's commit")
}

// twoMasters is the same on two servers that send each other what is committed already.
// The lag between them, milliseconds as a rule, lasts here until the last sale is over.
func twoMasters() Experiment {
	p := pair{duel: duel{number: 23, hazard: "two-masters"}, database: rig.TwoMasters, lag: true}
	return p.experiment("two masters, and a lag between them", "each node sells what the other has sold")
}

// pair is a duel across two databases: the victim's replica writes to node A, the rival's
// to node B. While the victim is about to write, the rival tries. If the lock kept it out
// it comes again when the victim has its goods: does node B know what is left?
type pair struct {
	duel
	database rig.Database
	lag      bool // nobody hears of the other's writes before the end
}

// rivalPatience is for locks that keep the rival out; the sale takes milliseconds.
const rivalPatience = 2 * time.Second

func (p pair) experiment(title, shows string) Experiment {
	return Experiment{Number: p.number, Hazard: p.hazard, Title: title, Shows: shows, Applies: trustsMySQL, Lab: labOf(p.database), run: p.run}
}

// staleRead has all replicas write to the primary and read the stock at a follower, as a
// read-write split does (tutorial 1.6.3). Of the victim's sale the follower hears when the
// rival's is over: whoever locks, and then reads there, has locked in vain.
func staleRead() Experiment {
	d := duel{number: 23, hazard: "stale-read", step: "writing", rival: patient(rivalPatience), strike: sellUnheard}
	e := d.experiment(trustsMySQL, "reads go to a follower that lags", "one after the other, and the second sells what the first has sold")
	e.Lab = labOf(rig.DelayedReads)
	e.run = func(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error) {
		cells, err := d.run(ctx, c, subjects, seed)
		for i := range cells {
			if cells[i].Invariant == "I1" {
				cells[i].Why = "the rival read at the follower, which had not heard of the sale: " + cells[i].Why
			}
		}
		return cells, err
	}
	return e
}

// sellUnheard has the victims sell while replication is held.
func sellUnheard(ctx context.Context, f *fight) (func(context.Context) error, error) {
	release, err := f.class.Rig.HoldReplication(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	f.span.What, f.span.Who = "replication held", "mysql-2"
	heal := func(ctx context.Context) error {
		if err := release(ctx); err != nil {
			return err
		}
		return f.class.Rig.AwaitEven(ctx) // what is left is read at the follower, too
	}
	if err := f.class.replica(f.on[victim]).GoOn(ctx); err != nil {
		return heal, err
	}
	f.wait(victim)
	return heal, nil
}

// trustsMySQL are those whose only authority is the database, and two others beside them.
func trustsMySQL(c Card) bool {
	return c.ID == "redis" || c.ID == "zk" || c.Scope != "process" && slices.Equal(c.Backends, []string{"mysql"})
}

// labOf is a small lab on that database: of faults' own servers it needs none.
func labOf(database rig.Database) func(rig.Config) rig.Config {
	return func(cfg rig.Config) rig.Config {
		cfg.Database = database
		cfg.Redis, cfg.Ensemble, cfg.RedisReplica, cfg.Clocks, cfg.Proxied, cfg.Nginx = 1, 0, false, false, false, false
		return cfg
	}
}

func (p pair) run(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error) {
	draw := rand.New(rand.NewPCG(uint64(seed), uint64(p.number))) //nolint:gosec // not a secret
	// Replicas 1 and 3 write to node A, replica 2 to node B.
	f := &fight{duel: p.duel, class: c, on: [3]int{victim: 2 * draw.IntN(2), rival: 1, third: 1}}
	subjects = slices.Clone(subjects)
	draw.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	if err := f.offer(ctx, subjects, "writing"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	release := func(context.Context) error { return nil }
	f.span = history.Span{What: "two nodes", Who: "mysql, mysql-2", From: c.since()}
	if p.lag {
		held, err := c.Rig.HoldReplication(ctx)
		if err != nil {
			return nil, err //nolint:wrapcheck // says all
		}
		release, f.span.What = held, "replication held"
	}
	err := f.sellOnBoth(ctx, p.lag)
	if err := errors.Join(err, release(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	f.span.To = c.since()
	if err := c.Rig.AwaitEven(ctx); err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	f.on[rival] = f.on[victim] // through whom a cell reads what is left: node A
	cells := make([]Cell, len(f.players))
	for i, player := range f.players {
		cells[i] = acrossNodes(f.cell(ctx, player, seed), player)
	}
	return cells, ctx.Err()
}

// sellOnBoth is the duel itself.
func (f *fight) sellOnBoth(ctx context.Context, lag bool) error {
	f.send(ctx, victim, nil)
	if err := f.arrive(ctx, victim, func(p *player, owner string) { p.owner = owner }); err != nil {
		return err
	}
	f.struck = f.class.since()
	f.send(ctx, rival, patient(rivalPatience))
	f.wait(rival)
	if err := f.class.replica(f.on[victim]).GoOn(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	f.wait(victim)
	if !lag {
		if err := f.class.Rig.AwaitEven(ctx); err != nil {
			return err //nolint:wrapcheck // says all
		}
	}
	var again sync.WaitGroup
	for _, p := range f.players {
		if p.ops[rival].Outcome != history.Refused {
			continue
		}
		again.Go(func() {
			defer close(p.ended[third])
			p.ops[third] = f.class.buy(ctx, f.on[third], p.Subject, patient(bound)(p.Card))
		})
	}
	again.Wait()
	return nil
}

// acrossNodes adds what only a pair can show: how the rival fared when it came again, and
// a row lock that did not last until its holder's commit.
func acrossNodes(cell Cell, p *player) Cell {
	if over(p.ended[third]) {
		cell.Why += "; again: " + answer(p.ops[third])
		if cell.Invariant == "I1" {
			cell.Why = "the lock kept order, but node B had not heard of the sale on node A: " + cell.Why
		}
	}
	if cell.Verdict == Safe && grantedAnew(cell.Recording.Events) > 0 {
		cell.Verdict = Wasteful
		cell.Why = "the row lock kept nobody out: the other node's commit undid its holder, which began anew; " + cell.Why
	}
	return cell
}

// grantedAnew counts the grants that an owner got after its first: a lock that was gone
// before its sale was over.
func grantedAnew(events []history.Event) (n int) {
	had := map[string]bool{}
	for _, e := range events {
		if e.Step != "granted" {
			continue
		}
		if had[e.Owner] {
			n++
		}
		had[e.Owner] = true
	}
	return n
}
