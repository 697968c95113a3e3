package experiment

import (
	"context"
	"errors"
	"fmt"
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
	p := pair{schedule: schedule{hazard: "galera"}, database: rig.Galera}
	return p.experiment("two nodes of a Galera cluster", "a row lock on one node, undone by the other's commit")
}

// twoMasters is the same on two servers that send each other what is committed already.
// The lag between them, milliseconds as a rule, lasts here until the last sale is over.
func twoMasters() Experiment {
	p := pair{schedule: schedule{hazard: "two-masters"}, database: rig.TwoMasters, lag: true}
	return p.experiment("two masters, and a lag between them", "each node sells what the other has sold")
}

// pair is a duel across two databases: the victim's replica writes to node A, the rival's
// to node B. While the victim is about to write, the rival tries. If the lock kept it out
// it comes again when the victim has its goods: does node B know what is left?
type pair struct {
	schedule
	database rig.Database
	lag      bool // nobody hears of the other's writes before the end
}

// rivalPatience is for locks that keep the rival out; the sale takes milliseconds.
const contenderWait = 2 * time.Second

func (p pair) experiment(title, shows string) Experiment {
	return Experiment{Hazard: p.hazard, Title: title, Shows: shows, Applies: trustsMySQL, Lab: labOf(p.database), run: p.run}
}

// staleRead has all replicas write to the primary and read the stock at a follower, as a
// read-write split does (tutorial 1.6.3). Of the victim's sale the follower hears when the
// rival's is over: whoever locks, and then reads there, has locked in vain.
func staleRead() Experiment {
	sched := schedule{hazard: "stale-read", step: "writing", contenderParams: withWait(contenderWait), inject: sellUnreplicated}
	e := sched.experiment(trustsMySQL, "reads go to a follower that lags", "one after the other, and the second sells what the first has sold")
	e.Lab = labOf(rig.DelayedReads)
	e.run = func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) ([]Result, error) {
		results, err := sched.run(ctx, bed, subjects, seed)
		for i := range results {
			if results[i].Invariant == Conservation {
				results[i].Why = "the rival read at the follower, which had not heard of the sale: " + results[i].Why
			}
		}
		return results, err
	}
	return e
}

// sellUnheard has the victims sell while replication is held.
func sellUnreplicated(ctx context.Context, r *run) (func(context.Context) error, error) {
	release, err := r.bed.Rig.HoldReplication(ctx)
	if err != nil {
		return nil, err
	}
	r.span.What, r.span.Who = "replication held", "mysql-2"
	heal := func(ctx context.Context) error {
		if err := release(ctx); err != nil {
			return err
		}
		return r.bed.Rig.AwaitEven(ctx) // what is left is read at the follower, too
	}
	if err := r.bed.replica(r.on[holder]).GoOn(ctx); err != nil {
		return heal, err
	}
	r.await(holder)
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

func (p pair) run(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) ([]Result, error) {
	random := draw(seed, p.hazard)
	// Replicas 1 and 3 write to node A, replica 2 to node B.
	r := &run{schedule: p.schedule, bed: bed, on: [3]int{holder: 2 * random.IntN(2), contender: 1, observer: 1}}
	subjects = slices.Clone(subjects)
	random.Shuffle(len(subjects), func(i, j int) { subjects[i], subjects[j] = subjects[j], subjects[i] })
	if err := r.addProducts(ctx, subjects, "writing"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	release := func(context.Context) error { return nil }
	r.span = history.Span{What: "two nodes", Who: "mysql, mysql-2", From: bed.since()}
	if p.lag {
		held, err := bed.Rig.HoldReplication(ctx)
		if err != nil {
			return nil, err
		}
		release, r.span.What = held, "replication held"
	}
	err := r.sellOnBoth(ctx, p.lag)
	if err := errors.Join(err, release(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	r.span.To = bed.since()
	if err := bed.Rig.AwaitEven(ctx); err != nil {
		return nil, err
	}
	r.on[contender] = r.on[holder] // through whom a cell reads what is left: node A
	results := make([]Result, len(r.participants))
	for i, player := range r.participants {
		results[i] = acrossNodes(r.result(ctx, player, seed), player)
	}
	return results, ctx.Err()
}

// sellOnBoth is the duel itself.
func (r *run) sellOnBoth(ctx context.Context, lag bool) error {
	r.send(ctx, holder, nil)
	if err := r.awaitStopped(ctx, holder, func(p *participant, owner string) { p.holderID = owner }); err != nil {
		return err
	}
	r.injectedAt = r.bed.since()
	r.send(ctx, contender, withWait(contenderWait))
	r.await(contender)
	if err := r.bed.replica(r.on[holder]).GoOn(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	r.await(holder)
	if !lag {
		if err := r.bed.Rig.AwaitEven(ctx); err != nil {
			return err
		}
	}
	var again sync.WaitGroup
	for _, p := range r.participants {
		if p.ops[contender].Outcome != history.Refused {
			continue
		}
		again.Go(func() {
			defer close(p.ended[observer])
			p.ops[observer] = r.bed.buy(ctx, r.on[observer], p.Subject, withWait(grantBound)(p.Card))
		})
	}
	again.Wait()
	return nil
}

// acrossNodes adds what only a pair can show: how the rival fared when it came again, and
// a row lock that did not last until its holder's commit.
func acrossNodes(result Result, p *participant) Result {
	if isClosed(p.ended[observer]) {
		result.Why += "; again: " + Answer(p.ops[observer])
		if result.Invariant == Conservation {
			result.Why = "the lock kept order, but node B had not heard of the sale on node A: " + result.Why
		}
	}
	if result.Verdict == Safe && grantedAnew(result.Recording.Events) > 0 {
		result.Verdict = Wasteful
		result.Why = "the row lock kept nobody out: the other node's commit undid its holder, which began anew; " + result.Why
	}
	return result
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
