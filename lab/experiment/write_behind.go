package experiment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
)

// writeBehind kills the victim's replica when its sale has left the stock that is kept
// elsewhere, and nobody has carried it to the row.
func writeBehind() Experiment {
	return Experiment{
		Number: 20, Hazard: "write-behind", run: soldBehindTheRow,
		Applies: func(c Card) bool { return c.Stock != "" },
		Title:   "who sold dies before the row has heard of it", Shows: "sold and not in the row; does the row learn of it?",
	}
}

func soldBehindTheRow(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error) {
	draw := rand.New(rand.NewPCG(uint64(seed), 20)) //nolint:gosec // not a secret
	f := &fight{duel: duel{number: 20, hazard: "write-behind"}, class: c}
	copy(f.on[:], draw.Perm(len(c.Rig.Addresses().Replicas)))
	if err := f.offer(ctx, subjects, "written"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	f.send(ctx, third, nil) // the first sale brings the stock over
	f.wait(third)
	// Whoever could carry the sale is cut off from MySQL. Business goes on: these sales
	// need none.
	mend, err := f.inject(ctx, c.linesTo("mysql")...)
	if err != nil {
		return nil, err
	}
	f.send(ctx, victim, nil)
	if err := f.arrive(ctx, victim, func(p *player, owner string) { p.owner = owner }); err != nil {
		return nil, err
	}
	server, err := f.server(victim)
	if err != nil {
		return nil, err
	}
	f.span = history.Span{What: "killed", Who: server.Name(), From: c.since()}
	revive, err := fault.Kill{Server: server}.Inject(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	f.wait(victim)
	f.send(ctx, rival, nil) // is told what is left
	f.wait(rival)
	before, err := f.rows(ctx)
	if err != nil {
		return nil, err
	}
	calm := context.WithoutCancel(ctx)
	if err := mend(calm); err != nil {
		return nil, err
	}
	f.struck = c.since()
	took := f.reconciled(ctx) // while the victim is dead: others must do it
	f.span.To = c.since()
	after, err := f.rows(ctx)
	if err := errors.Join(err, revive(calm)); err != nil {
		return nil, err
	}
	cells := make([]Cell, len(f.players))
	for i, p := range f.players {
		cells[i] = f.reconciliation(ctx, p, before[i], after[i], took[i])
		cells[i].Seed = seed
	}
	return cells, ctx.Err() //nolint:wrapcheck // says all
}

// rows are the players' counts in MySQL, asked past all lines.
func (f *fight) rows(ctx context.Context) ([]int, error) {
	db, err := sql.Open("mysql", f.class.Rig.Addresses().MySQL)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	defer func() { _ = db.Close() }()
	counts := make([]int, len(f.players))
	for i, p := range f.players {
		if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ?", p.product).Scan(&counts[i]); err != nil {
			return nil, fmt.Errorf("the row of %s: %w", p.Name(), err)
		}
	}
	return counts, nil
}

// reconciled waits until each player's row says what its stock elsewhere says, and returns
// how long that took. Who never gets there is seen by its counts.
func (f *fight) reconciled(ctx context.Context) []time.Duration {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	took := make([]time.Duration, len(f.players))
	_ = eventually(ctx, "the row has heard of all sales", func() bool {
		rows, err := f.rows(ctx)
		if err != nil {
			return false
		}
		all := true
		for i, p := range f.players {
			switch {
			case took[i] > 0:
			case rows[i] == p.ops[rival].Remaining:
				took[i] = f.class.since() - f.struck
			default:
				all = false
			}
		}
		return all
	})
	return took
}

// reconciliation judges a player by its row before and after.
func (f *fight) reconciliation(ctx context.Context, p *player, before, after int, took time.Duration) Cell {
	ops := p.ops[:]
	left := p.ops[rival].Remaining
	cell := Cell{
		Number: f.number, Hazard: f.hazard, Strategy: p.Card.ID, Claim: p.Card.Claim(f.hazard),
		Sold: history.Taken(ops, history.OK), Taken: pieces - after,
		Recording: history.Recording{Start: f.class.rec.start, Ops: ops, Events: f.class.rec.of(p.key), Spans: []history.Span{f.span}},
	}
	count, err := f.class.replica(f.on[rival]).Count(ctx, p.Card.ID, p.product)
	i5 := check.StockElsewhere(ops, pieces, after, 0)
	seen := fmt.Sprintf("with the victim dead, %s said %d and the row %d: %d sold and not in the row; ", p.Card.Stock, left, before, before-left)
	switch {
	case err != nil:
		cell.Verdict, cell.Why = Unknown, err.Error()
	case p.owner == "" || p.ops[rival].Outcome != history.OK:
		cell.Verdict, cell.Why = Unknown, "victim: "+answer(p.ops[victim])+"; rival: "+answer(p.ops[rival])
	case i5.Verdict != check.Holds:
		cell.Verdict, cell.Invariant, cell.Why = Violated, "I5", seen+fmt.Sprintf("%v later the row said %d: %s", bound, after, i5.Why)
	case after != count:
		cell.Verdict, cell.Invariant, cell.Why = Violated, "I5", seen+fmt.Sprintf("later the row said %d, and %s %d", after, p.Card.Stock, count)
	case before <= left:
		cell.Verdict, cell.Why = NotShown, seen+i5.Why
	default:
		cell.Verdict, cell.Why = Safe, seen+fmt.Sprintf("%v later the row said %d: %s", took.Round(time.Millisecond), after, i5.Why)
	}
	return cell
}
