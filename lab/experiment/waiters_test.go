package experiment

import (
	"context"
	"slices"
	"testing"

	"oversell/api"
	"oversell/lab/load"
	"oversell/lab/player"
)

// TestWaitersStay counts requests after the end of several leases, as on a slow machine: each next
// holder stops, and the others still poll.
func TestWaitersStay(t *testing.T) {
	bed := open(t)
	i := slices.IndexFunc(bed.Cards, func(c api.Card) bool { return c.ID == "redis-uuid" })
	product, err := bed.AddProduct(t.Context(), 0, 2*waiters)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{Subject: player.Subject{Card: bed.Cards[i], Product: product}, bed: bed}
	sent, err := q.withWaiters(t.Context(), pollSamples, func(ctx context.Context, q *queue) (sent int64, err error) {
		if err := load.Sleep(ctx, 4*player.Lease); err != nil {
			return 0, err
		}
		sent, _, err = q.count(ctx, func() error { return load.Sleep(ctx, quietPeriod) })
		return sent, err
	})
	if err != nil || sent <= wastefulFrom {
		t.Errorf("%d waiters sent %d requests in a second: %v", waiters, sent, err)
	}
}
