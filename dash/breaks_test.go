package dash

import (
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/history"
)

// TestBreaksKeepTheNewest checks that a new result replaces the older result of the same hazard and
// strategy. If all recordings together are too long, the oldest are deleted, but their verdicts
// stay.
func TestBreaksKeepTheNewest(t *testing.T) {
	b := New(Config{Binary: "oversell"}).breaks
	before := b.count
	run := func(strategy string, v api.Verdict, steps int) {
		b.keep(experiment.Result{
			Hazard: "pause", Strategy: strategy, Verdict: v, Claim: api.Breaks,
			Recording: history.Recording{Events: make([]history.Event, steps)},
		})
		b.makeRoom()
	}
	run("old", api.Broken, maxSteps/2)
	run("new", api.Safe, maxSteps/2)
	of := func(strategy string) *storedResult { return b.runs[resultKey{Hazard: "pause", Strategy: strategy}] }
	if of("old").Forgotten || of("new").Forgotten {
		t.Error("there was room for both")
	}
	run("new", api.Broken, maxSteps/2)
	if got := of("new"); got.Agreement() != "agrees" || got.ID != before+3 || len(b.runs) != 2 {
		t.Errorf("of two runs the older one stands: %s, number %d, of %d results", got.Verdict, got.ID, len(b.runs))
	}
	run("third", api.Inconclusive, 1)
	if old := of("old"); !old.Forgotten || len(old.Recording.Events) > 0 || old.Verdict != api.Broken {
		t.Errorf("the oldest recording is still there, or its verdict isn't: %v %s", old.Forgotten, old.Verdict)
	}
	if of("third").Agreement() != "" {
		t.Error("an inconclusive run neither agrees nor contradicts")
	}
}

// TestRunsOfTheNextLab checks that a run of the next lab has another number than an earlier lab's
// run. So an open page notices the new run.
func TestRunsOfTheNextLab(t *testing.T) {
	first := New(Config{}).breaks
	first.keep(experiment.Result{Hazard: "pause", Strategy: "redis"})
	for begun := time.Now().UnixMilli(); time.Now().UnixMilli() < begun+2; {
		time.Sleep(time.Millisecond)
	}
	next := New(Config{}).breaks
	next.keep(experiment.Result{Hazard: "pause", Strategy: "redis"})
	of := func(b *breaks) int { return b.runs[resultKey{Hazard: "pause", Strategy: "redis"}].ID }
	if of(first) == of(next) {
		t.Errorf("both have number %d", of(next))
	}
}

// TestRecordedVerdicts checks that docs/matrix.json has the verdicts on the basic hazards.
func TestRecordedVerdicts(t *testing.T) {
	b := New(Config{Binary: "oversell"}).breaks
	if s := b.recorded[resultKey{"pause", "redis", false}]; s.Verdict != api.Broken || s.Runs == 0 {
		t.Errorf("the recorded verdict of redis at a pause is %+v", s)
	}
	basic := 0
	for _, h := range experiment.All() {
		if h.Basic {
			basic++
		}
	}
	if basic != 8 {
		t.Errorf("%d basic hazards", basic)
	}
}
