package main

import (
	"context"
	"fmt"

	"oversell/lab/measure"
	"oversell/lab/ratio"
)

// basic are the strategies that the tables of durability and of waiters compare.
var basic = []string{
	"none", "atomic", "combining", "for-update", "version", "db-row", "get-lock", "redis", "redlock", "zk", "etcd", "redis-stock",
}

// candidate is a strategy under one condition.
type candidate struct{ strategy, condition string }

// String names the candidate in the samples.
func (c candidate) String() string { return c.strategy + ", " + c.condition }

// grid has the measurements of all basic strategies under all conditions.
type grid struct {
	*bench
	conditions []string
	measured   map[candidate][]figures
}

// measureGrid measures each basic strategy under each condition once in each round.
func (b *bench) measureGrid(ctx context.Context, conditions []string, once func(context.Context, candidate) (figures, error)) (g grid, err error) {
	var all []candidate
	for _, strategy := range basic {
		for _, condition := range conditions {
			all = append(all, candidate{strategy, condition})
		}
	}
	g = grid{bench: b, conditions: conditions}
	g.measured, err = inTurn(b, all, func(c candidate) (figures, error) { return once(ctx, c) })
	return g, err
}

// table prints a cell for each strategy and each condition.
func (g grid) table(title string, cell func(candidate) string) {
	rows := [][]string{append([]string{title}, g.conditions...)}
	for _, strategy := range basic {
		row := []string{strategy}
		for _, condition := range g.conditions {
			row = append(row, cell(candidate{strategy, condition}))
		}
		rows = append(rows, row)
	}
	g.rows(rows)
}

// ranged returns a cell with the median of a figure and its interval.
func (g grid) ranged(of figure, digits int) func(candidate) string {
	return func(c candidate) string { return ranged(g.measured[c], of, digits) }
}

// timed is ranged for a rate or a time. It returns the share of the cores that the load took instead, if that is more than
// Machine.MostLoad: then the figure is partly that of the load.
func (g grid) timed(of figure, digits int) func(candidate) string {
	return func(c candidate) string {
		if load := ratio.Of(values(g.measured[c], share)).Median; load > (measure.Machine{}).MostLoad() {
			return fmt.Sprintf("load %.0f %%", 100*load)
		}
		return ranged(g.measured[c], of, digits)
	}
}

// printLoad prints the highest share of the cores that the load took.
func (g grid) printLoad() {
	highest, of := 0.0, candidate{}
	for c, all := range g.measured {
		if median := ratio.Of(values(all, share)).Median; median > highest {
			highest, of = median, c
		}
	}
	g.printf("The load took %.0f %% of the cores or less (%v). Above a third, a cell has this share in place of the rate or the time.\n\n", 100*highest, of)
}

// against compares the rates of two candidates in the same rounds.
func (g grid) against(a, b candidate) ratio.Result {
	return ratio.Paired(a.String(), b.String(), values(g.measured[a], rate), values(g.measured[b], rate))
}

// faster reports whether the strategy a is shown to sell faster than b.
func (g grid) faster(a, b, condition string) bool {
	r := g.against(candidate{a, condition}, candidate{b, condition})
	return r.Differs() && r.Ratio.Median > 1
}
