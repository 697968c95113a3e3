package experiment

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/player"
)

// writeBehind kills the holder's replica after its sale in Redis, before the write to MySQL's row.
func writeBehind() Experiment {
	return Experiment{
		Hazard: "write-behind", Group: stockElsewhere, Applies: func(c api.Card) bool { return c.Stock != "" },
		Title:   api.Text{EN: "the replica that sold is killed before it writes the row", ZH: "卖出之后、更新数据行之前宕机"},
		Shows:   api.Text{EN: "sold, but not in the row; do the others write it later?", ZH: "已卖出，数据行还没有更新；以后会更新吗？"},
		perform: soldBehindTheRow,
	}
}

// sellUncarried lets the holder's replica sell while no replica reaches MySQL, so that the row lacks this sale. It kills that
// replica, and sells once more on another one, whose answer has the remaining stock. C loads the stock into Redis first. A
// replica reads the name of its shop from MySQL once, so A and B read it before.
const sellUncarried = "C sells, C ends, A reads, B reads, writing behind stops, A sells at written, A dies, B sells, B ends"

func soldBehindTheRow(ctx context.Context, r *round) (results []Result, err error) {
	plan, err := chaos.Parse(sellUncarried)
	if err != nil {
		return nil, fmt.Errorf("write-behind: %w", err)
	}
	r.assign()
	p, err := r.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("add the products: %w", err)
	}
	uncancelled := context.WithoutCancel(ctx)
	if err := p.Play(ctx, plan); err != nil {
		return nil, errors.Join(err, p.ReachRow(uncancelled), p.Finish(uncancelled))
	}
	var sold []*played
	for _, one := range p.Played(plan) {
		sold = append(sold, &played{Played: one})
	}
	before, err := r.rows(ctx, sold)
	if err := errors.Join(err, p.ReachRow(uncancelled)); err != nil {
		return nil, errors.Join(err, p.Finish(uncancelled))
	}
	r.injectedAt = r.bed.Since()
	took := r.awaitReconciled(ctx, sold) // the holder's replica is dead, so others must write the row
	after, err := r.rows(ctx, sold)
	if err := errors.Join(err, p.Finish(uncancelled)); err != nil {
		return nil, err
	}
	for i, one := range sold {
		results = append(results, r.reconciliation(ctx, one, before[i], after[i], took[i]))
	}
	return results, ctx.Err()
}

// rows returns the stock of each strategy in MySQL's row, read over a direct connection.
func (r *round) rows(ctx context.Context, sold []*played) ([]int, error) {
	counts := make([]int, len(sold))
	return counts, backend.WithMySQL(r.bed.Rig.Addresses().MySQL, func(db *sql.DB) error {
		for i, p := range sold {
			if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ?", p.Product).Scan(&counts[i]); err != nil {
				return fmt.Errorf("the row of %s: %w", p.Name(), err)
			}
		}
		return nil
	})
}

// awaitReconciled returns how long each row in MySQL took to equal the strategy's stock outside
// MySQL. 0 means that the row never became equal.
func (r *round) awaitReconciled(ctx context.Context, sold []*played) []time.Duration {
	ctx, cancel := context.WithTimeout(ctx, player.GrantBound)
	defer cancel()
	took := make([]time.Duration, len(sold))
	_ = player.Eventually(ctx, "the rows have all sales", func() bool {
		rows, err := r.rows(ctx, sold)
		for i, p := range sold {
			if err == nil && took[i] == 0 && rows[i] == p.Ops[contender].Remaining {
				took[i] = r.bed.Since() - r.injectedAt
			}
		}
		return !slices.Contains(took, 0)
	})
	return took
}

// reconciliation judges MySQL's row: all sold pieces must be taken from the row in the end.
func (r *round) reconciliation(ctx context.Context, p *played, before, after int, took time.Duration) Result {
	result := r.safe(p.Subject, p.Recording)
	count, err := r.bed.Replica(r.countOn).Count(ctx, p.Card.ID, p.Product)
	row := check.Stock(p.Recording.Ops, few, after)
	result.Sold, result.Taken = row.Sold, few-after
	left := p.Ops[contender].Remaining
	seen := api.Textf("After the holder was killed, %s had %d left and the row %d: %d were sold, and not yet taken from the row.",
		"持锁者被杀死后，%s 剩 %d，数据行剩 %d：有 %d 件已卖出，还没有从数据行扣减。", p.Card.Stock, left, before, before-left)
	counts := api.Textf("After %v, the row had %d left: %d were sold for certain, %d perhaps, and %d were taken from the row.",
		"%v 之后数据行剩 %d：确定卖出 %d 件，可能卖出 %d 件，数据行减少 %d。", cmp.Or(took.Round(time.Millisecond), player.GrantBound), after, row.Sold, row.Unknown, result.Taken)
	result.Why = api.Joined(seen, counts)
	switch {
	case err != nil:
		result.Verdict, result.Why = api.Inconclusive, failure(err)
	case p.Stopped == "" || p.Ops[contender].Outcome != history.OK:
		result.Verdict, result.Why = api.Inconclusive, api.Joined(result.Counts(), p.answers())
	case row.Verdict != api.Holds:
		result.Verdict, result.Invariant = api.Broken, Reconciliation
	case after != count:
		result.Verdict, result.Invariant = api.Broken, Reconciliation
		result.Why = api.Joined(seen, api.Textf(
			"In the end, the row had %d left, and %s %d.",
			"最后数据行剩 %d，%s 剩 %d。", after, p.Card.Stock, count))
	case before <= left:
		result.Verdict = api.NotShown
	}
	return result
}
