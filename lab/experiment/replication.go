package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// galera lets the holder and the contender write to two nodes of one cluster (tutorial 1.6.3:
// locks fail in a cluster). Row locks are local to a node. The nodes certify each commit: the
// second of two conflicting ones is rolled back with error 1213. A commit reaches the other
// node within milliseconds, and the contender waits for it.
func galera() Experiment {
	p := pair{schedule: schedule{hazard: "galera"}, database: rig.Galera}
	return p.experiment("two nodes of a Galera cluster", "a row lock on one node, and the commit of the other node rolls its holder back")
}

// twoMasters runs the same on two servers that replicate to each other after the commit. The
// lag between them, usually milliseconds, lasts here until the last sale is over.
func twoMasters() Experiment {
	p := pair{schedule: schedule{hazard: "two-masters"}, database: rig.TwoMasters, lag: true}
	return p.experiment("two masters, and a lag between them", "each node sells what the other node has sold")
}

// pair is a run across two databases: the holder's replica writes to node A, the contender's
// to node B. The contender tries while the holder is about to write. If the lock rejected it,
// it tries again after the holder's sale, and node B may not have the new stock yet.
type pair struct {
	schedule
	database rig.Database
	lag      bool // replication is held until the end
}

// contenderWait limits the wait for a lock that is held; a sale takes milliseconds.
const contenderWait = 2 * time.Second

func (p pair) experiment(title, shows string) Experiment {
	return Experiment{Hazard: p.hazard, Title: title, Shows: shows, Applies: trustsMySQL, Lab: labOf(p.database), run: p.run}
}

// staleRead lets all replicas write to the primary and read the stock at a follower, as a
// read-write split does (tutorial 1.6.3). The follower receives the holder's sale only after
// the contender's: a lock does not help a request that reads there.
func staleRead() Experiment {
	sched := schedule{hazard: "stale-read", step: "writing", contenderParams: withWait(contenderWait), inject: sellUnreplicated}
	e := sched.experiment(trustsMySQL, "reads go to a follower that lags behind", "one sale after the other, and the second sells what the first has sold")
	e.Lab = labOf(rig.DelayedReads)
	e.run = func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) ([]Result, error) {
		results, err := sched.run(ctx, bed, subjects, seed)
		for i := range results {
			if results[i].Invariant == Conservation {
				results[i].Why = "the contender read at the follower, which had not received the sale: " + results[i].Why
			}
		}
		return results, err
	}
	return e
}

// sellUnreplicated lets the holders sell while replication is held.
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
		return r.bed.Rig.AwaitEven(ctx) // the remaining stock is read at the follower, too
	}
	if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
		return heal, err
	}
	r.await(holder)
	return heal, nil
}

// trustsMySQL selects the strategies that rely on the database only, and two locks to compare
// them with.
func trustsMySQL(c Card) bool {
	return c.ID == "redis" || c.ID == "zk" || c.Scope != api.ScopeProcess && slices.Equal(c.Backends, []string{"mysql"})
}

// labOf configures a small lab on that database, without the servers and links of the faults.
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
		return nil, fmt.Errorf("add the products: %w", err)
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
	r.on[contender] = r.on[holder] // the remaining stock is read on node A
	results := make([]Result, len(r.participants))
	for i, player := range r.participants {
		results[i] = acrossNodes(r.result(ctx, player, seed), player)
	}
	return results, ctx.Err()
}

// sellOnBoth sends the requests to both nodes.
func (r *run) sellOnBoth(ctx context.Context, lag bool) error {
	r.send(ctx, holder, nil)
	if err := r.awaitStopped(ctx, holder, func(p *participant, owner string) { p.holderID = owner }); err != nil {
		return err
	}
	r.injectedAt = r.bed.since()
	r.send(ctx, contender, withWait(contenderWait))
	r.await(contender)
	if err := r.bed.replica(r.on[holder]).ResumeAll(context.WithoutCancel(ctx)); err != nil {
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

// acrossNodes adds what only a pair can show: the contender's second answer, and a row lock
// that did not last until the commit.
func acrossNodes(result Result, p *participant) Result {
	if isClosed(p.ended[observer]) {
		result.Why += "; second attempt: " + Answer(p.ops[observer])
		if result.Invariant == Conservation {
			result.Why = "the lock kept the order, but node B had not received the sale on node A: " + result.Why
		}
	}
	if result.Verdict == Safe && grantedAnew(result.Recording.Events) > 0 {
		result.Verdict = Wasteful
		result.Why = "the row lock excluded nobody: the commit of the other node rolled its holder back, and that retried; " + result.Why
	}
	return result
}

// grantedAnew counts the grants after the first of each owner: its lock was lost before its
// sale was over.
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
