package experiment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
)

// writeBehind kills the victim's replica when its sale has left the stock that is kept
// elsewhere, and nobody has carried it to the row.
func writeBehind() Experiment {
	return Experiment{
		Hazard: "write-behind", run: soldBehindTheRow,
		Applies: func(c Card) bool { return c.Stock != "" },
		Title:   "who sold dies before the row has heard of it", Shows: "sold and not in the row; does the row learn of it?",
	}
}

func soldBehindTheRow(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) ([]Result, error) {
	random := draw(seed, "write-behind")
	r := &run{schedule: schedule{hazard: "write-behind"}, bed: bed}
	copy(r.on[:], random.Perm(len(bed.Rig.Addresses().Replicas)))
	if err := r.addProducts(ctx, subjects, "written"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	r.send(ctx, observer, nil) // the first sale brings the stock over
	r.await(observer)
	// Whoever could carry the sale is cut off from MySQL. Business goes on: these sales
	// need none.
	mend, err := r.injectAll(ctx, bed.cutsTo("mysql")...)
	if err != nil {
		return nil, err
	}
	r.send(ctx, holder, nil)
	if err := r.awaitStopped(ctx, holder, func(p *participant, owner string) { p.holderID = owner }); err != nil {
		return nil, err
	}
	server, err := r.server(holder)
	if err != nil {
		return nil, err
	}
	r.span = history.Span{What: "killed", Who: server.Name(), From: bed.since()}
	revive, err := fault.Kill{Server: server}.Inject(ctx)
	if err != nil {
		return nil, err
	}
	r.await(holder)
	r.send(ctx, contender, nil) // is told what is left
	r.await(contender)
	before, err := r.rows(ctx)
	if err != nil {
		return nil, err
	}
	uncancelled := context.WithoutCancel(ctx)
	if err := mend(uncancelled); err != nil {
		return nil, err
	}
	r.injectedAt = bed.since()
	took := r.awaitReconciled(ctx) // while the victim is dead: others must do it
	r.span.To = bed.since()
	after, err := r.rows(ctx)
	if err := errors.Join(err, revive(uncancelled)); err != nil {
		return nil, err
	}
	results := make([]Result, len(r.participants))
	for i, p := range r.participants {
		results[i] = r.reconciliation(ctx, p, before[i], after[i], took[i])
		results[i].Seed = seed
	}
	return results, ctx.Err()
}

// rows are the players' counts in MySQL, asked past all lines.
func (r *run) rows(ctx context.Context) ([]int, error) {
	db, err := sql.Open("mysql", r.bed.Rig.Addresses().MySQL)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	defer func() { _ = db.Close() }()
	counts := make([]int, len(r.participants))
	for i, p := range r.participants {
		if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ?", p.product).Scan(&counts[i]); err != nil {
			return nil, fmt.Errorf("the row of %s: %w", p.Name(), err)
		}
	}
	return counts, nil
}

// reconciled waits until each player's row says what its stock elsewhere says, and returns
// how long that took. Who never gets there is seen by its counts.
func (r *run) awaitReconciled(ctx context.Context) []time.Duration {
	ctx, cancel := context.WithTimeout(ctx, grantBound)
	defer cancel()
	took := make([]time.Duration, len(r.participants))
	_ = eventually(ctx, "the row has heard of all sales", func() bool {
		rows, err := r.rows(ctx)
		if err != nil {
			return false
		}
		all := true
		for i, p := range r.participants {
			switch {
			case took[i] > 0:
			case rows[i] == p.ops[contender].Remaining:
				took[i] = r.bed.since() - r.injectedAt
			default:
				all = false
			}
		}
		return all
	})
	return took
}

// reconciliation judges a player by its row before and after.
func (r *run) reconciliation(ctx context.Context, p *participant, before, after int, took time.Duration) Result {
	ops := p.ops[:]
	left := p.ops[contender].Remaining
	result := Result{
		Hazard: r.hazard, Strategy: p.Card.ID, Claim: p.Card.Claim(r.hazard),
		Sold: history.Taken(ops, history.OK), Taken: pieces - after,
		Recording: history.Recording{Start: r.bed.rec.start, Ops: ops, Events: r.bed.rec.eventsOf(p.key), Spans: []history.Span{r.span}},
	}
	count, err := r.bed.replica(r.on[contender]).Count(ctx, p.Card.ID, p.product)
	i5 := check.StockElsewhere(ops, pieces, after, 0)
	seen := fmt.Sprintf("with the victim dead, %s said %d and the row %d: %d sold and not in the row; ", p.Card.Stock, left, before, before-left)
	switch {
	case err != nil:
		result.Verdict, result.Why = Unknown, err.Error()
	case p.holderID == "" || p.ops[contender].Outcome != history.OK:
		result.Verdict, result.Why = Unknown, "victim: "+Answer(p.ops[holder])+"; rival: "+Answer(p.ops[contender])
	case i5.Verdict != check.Holds:
		result.Verdict, result.Invariant, result.Why = Broken, Reconciliation, seen+fmt.Sprintf("%v later the row said %d: %s", grantBound, after, i5.Why)
	case after != count:
		result.Verdict, result.Invariant, result.Why = Broken, Reconciliation, seen+fmt.Sprintf("later the row said %d, and %s %d", after, p.Card.Stock, count)
	case before <= left:
		result.Verdict, result.Why = NotShown, seen+i5.Why
	default:
		result.Verdict, result.Why = Safe, seen+fmt.Sprintf("%v later the row said %d: %s", took.Round(time.Millisecond), after, i5.Why)
	}
	return result
}
