package experiment

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// TestDiedForTheHolder judges a holder that noticed that another request had acquired the lock, and did not sell.
func TestDiedForTheHolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		next  time.Duration // of the next grant
		holds history.Outcome
		want  api.Verdict
	}{
		{"within the lease", time.Second, history.Refused, api.Broken},
		{"after the lease", Lease, history.Refused, api.Safe},
		{"the holder sold first", time.Second, history.OK, api.Safe},
	} {
		const start = time.Minute
		result := Result{Verdict: api.Safe, Recording: history.Recording{Events: []history.Event{
			{At: start, Owner: "A", Step: "granted"}, {At: start + test.next, Owner: "B", Step: "granted"},
		}}}
		p := &participant{}
		p.stopped[holder], p.ops[holder].Outcome = "A", test.holds
		if diedForTheHolder(&result, p); result.Verdict != test.want {
			t.Errorf("%s: %s (%s), want %s", test.name, result.Verdict, result.Why, test.want)
		}
	}
}
