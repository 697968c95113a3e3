package experiment

import (
	"context"
	"slices"
	"testing"

	"oversell/api"
)

// TestWaitersStay counts requests after the end of several leases, as on a slow machine: each next
// holder stops, and the others still poll.
func TestWaitersStay(t *testing.T) {
	bed := open(t)
	i := slices.IndexFunc(bed.cards, func(c api.Card) bool { return c.ID == "redis-uuid" })
	product, err := bed.addProduct(t.Context(), 0, 2*waiters)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{Subject: Subject{Card: bed.cards[i], product: product}, bed: bed}
	sent, err := q.withWaiters(t.Context(), pollSamples, func(ctx context.Context, q *queue) (sent int64, err error) {
		if err := sleep(ctx, 4*Lease); err != nil {
			return 0, err
		}
		sent, _, err = q.count(ctx, func() error { return sleep(ctx, quietPeriod) })
		return sent, err
	})
	if err != nil || sent <= wastefulFrom {
		t.Errorf("%d waiters sent %d requests in a second: %v", waiters, sent, err)
	}
}
