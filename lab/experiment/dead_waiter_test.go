package experiment

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

// TestBehindTheDead judges a holder that noticed that another request had acquired the lock, and did not sell.
func TestBehindTheDead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		next  time.Duration // of the next grant
		holds history.Outcome
		want  api.Verdict
	}{
		{"within the lease", time.Second, history.Refused, api.Broken},
		{"after the lease", player.Lease, history.Refused, api.Safe},
		{"the holder sold first", time.Second, history.OK, api.Safe},
	} {
		const start = time.Minute
		p := &played{Played: &player.Played{Recording: history.Recording{Events: []history.Event{
			{At: start, Owner: "A", Step: "granted"}, {At: start + test.next, Owner: "B", Step: "granted"},
		}}}}
		p.Stopped, p.Ops[holder].Outcome, p.Ops[contender].Outcome = "A", test.holds, history.OK
		got := api.Safe
		if found := behindTheDead(p); found != nil {
			got = found.verdict
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
