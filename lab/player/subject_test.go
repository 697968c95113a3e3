package player

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

func TestLeased(t *testing.T) {
	for _, test := range []struct {
		card   api.Card
		lease  time.Duration
		renews bool
	}{
		{api.Card{ID: "redis", Locker: true, Lease: true, Renews: true, Backends: []string{"mysql", "redis"}}, Lease, true},
		{api.Card{ID: "redis-lua", Locker: true, Lease: true, Backends: []string{"mysql", "redis"}}, Lease, false},
		{api.Card{ID: "zk", Locker: true, Backends: []string{"mysql", "zookeeper"}}, ZKSession, true},
		{api.Card{ID: "mutex", Locker: true, Backends: []string{"mysql"}}, 0, false},
		{api.Card{ID: "reservation", Lease: true, Backends: []string{"mysql"}}, 0, false}, // no lock
	} {
		if got := Leased(test.card, history.Recording{}); got.Lease != test.lease || got.Renews != test.renews {
			t.Errorf("%s: %v, renewed: %v", test.card.ID, got.Lease, got.Renews)
		}
	}
}
