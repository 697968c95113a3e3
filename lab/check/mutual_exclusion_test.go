package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

func TestExclusion(t *testing.T) {
	tests := []struct {
		name        string
		steps       []string
		holds       int
		acted, idle int
		event       int // index of the second grant of the first pair that matters
	}{
		// These histories have no overlap.
		{name: "nothing happened"},
		{name: "no grant", steps: []string{"1 ann asked", "2 ann read", "3 ann written"}},
		{name: "one after the other", holds: 2, steps: []string{
			"1 ann granted", "2 ann writing", "3 ann written", "4 ann released",
			"5 bob granted", "6 bob written", "7 bob released",
		}},
		{name: "release and grant have the same time, the release was reported first", holds: 2, steps: []string{
			"1 ann granted", "4 ann released", "4 bob granted", "5 bob released",
		}},
		{name: "ann holds it twice", holds: 3, steps: []string{
			"1 ann granted", "2 ann released", "3 bob granted", "4 bob released", "5 ann granted", "6 ann written", "7 ann released",
		}},
		{name: "nested, and bob waits for the last release", holds: 2, steps: []string{
			"1 ann granted", "2 ann granted", "3 ann written", "4 ann released", "5 ann written", "6 ann released",
			"7 bob granted", "8 bob released",
		}},
		{name: "a release without a grant", holds: 1, steps: []string{"1 bob released", "2 ann granted", "3 bob released", "4 ann released"}},
		{name: "the last one never releases", holds: 2, steps: []string{
			"1 ann granted", "2 ann released", "3 bob granted", "4 bob written",
		}},

		// The overlaps in these histories do no harm.
		{name: "the release is reported late", holds: 2, idle: 1, event: 2, steps: []string{
			"1 ann granted", "2 ann written", "3 bob granted", "4 ann released", "5 bob written", "6 bob released",
		}},
		{name: "ann notices the loss and writes nothing", holds: 2, idle: 1, event: 2, steps: []string{
			"1 ann granted", "2 ann read", "30 bob granted", "31 bob written", "32 bob released", "40 ann released",
		}},
		{name: "ann is paused for ever", holds: 2, idle: 1, event: 1, steps: []string{
			"1 ann granted", "30 bob granted", "31 bob written", "32 bob released",
		}},
		{name: "ann acquires the lock again, and writes then", holds: 3, idle: 1, event: 1, steps: []string{
			"1 ann granted", "2 bob granted", "3 ann released", "4 bob released", "5 ann granted", "6 ann written", "7 ann released",
		}},

		// The overlaps in these histories do harm.
		{name: "paused past the lease, ann writes late", holds: 2, acted: 1, event: 2, steps: []string{
			"1 ann granted", "2 ann read", "30 bob granted", "31 bob written", "32 bob released", "40 ann written", "41 ann released",
		}},
		{name: "about to write is enough", holds: 2, acted: 1, event: 1, steps: []string{
			"1 ann granted", "30 bob granted", "31 ann writing",
		}},
		{name: "the same time, the grant was reported first", holds: 2, acted: 1, event: 1, steps: []string{
			"1 ann granted", "4 bob granted", "4 ann written", "4 ann released",
		}},
		{name: "a mutex in each replica", holds: 3, acted: 3, event: 1, steps: []string{
			"1 ann granted", "2 bob granted", "3 cat granted", "4 ann writing", "5 bob writing", "6 cat writing",
			"7 ann released", "8 bob released", "9 cat released",
		}},
		{name: "each holder releases the next one's lock", holds: 3, acted: 2, event: 1, steps: []string{
			"1 ann granted", "10 bob granted", "11 ann written", "12 ann released",
			"13 cat granted", "20 bob written", "21 bob released", "30 cat written", "31 cat released",
		}},
		{name: "an idle pair before the harmful one", holds: 3, acted: 1, idle: 1, event: 3, steps: []string{
			"1 ann granted", "2 bob granted", "3 ann released", "4 cat granted", "5 bob written", "6 bob released", "7 cat released",
		}},
		{name: "nested, and bob is granted the lock at the first release", holds: 2, acted: 1, event: 3, steps: []string{
			"1 ann granted", "2 ann granted", "3 ann released", "4 bob granted", "5 ann written", "6 ann released", "7 bob released",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := recording(t, tt.steps...)
			got := check.Exclusion(rec)
			if got.Holds != tt.holds || acted(got) != tt.acted || got.Idle != tt.idle || len(got.Overlaps) != tt.acted+tt.idle {
				t.Fatalf("%d holds, %d harmful pairs, %d idle, %d listed; want %d, %d, %d: %s",
					got.Holds, acted(got), got.Idle, len(got.Overlaps), tt.holds, tt.acted, tt.idle, got.Why)
			}
			want := api.Holds
			if tt.acted > 0 {
				want = api.Broken
			}
			if got.Verdict != want || got.Why.ZH == "" {
				t.Errorf("%s, want %s: %q", got.Verdict, want, got.Why)
			}
			i := slices.IndexFunc(got.Overlaps, func(o check.Overlap) bool { return o.Acted == (tt.acted > 0) })
			if i >= 0 && got.Overlaps[i].Second.From != rec.Events[tt.event].At {
				t.Errorf("the second grant was at %v, want event %d", got.Overlaps[i].Second.From, tt.event)
			}
		})
	}
}

// acted counts the harmful pairs, all of which are listed.
func acted(c check.MutualExclusion) (n int) {
	for _, o := range c.Overlaps {
		if o.Acted {
			n++
		}
	}
	return n
}

func TestExclusionNamesThePair(t *testing.T) {
	got := check.Exclusion(recording(t, "1 ann granted", "30 bob granted", "35 ann writing", "36 ann written", "40 ann released", "50 bob released"))
	if o := got.Overlaps[0]; len(got.Overlaps) != 1 || o.First.Owner != "ann" || o.First.To != 40*ms || o.Second.Owner != "bob" ||
		o.Second.To != 50*ms || o.From != 30*ms || o.To != 40*ms || !o.Acted {
		t.Errorf("overlaps %+v, first %+v, second %+v", got.Overlaps, o.First, o.Second)
	}
	const why = "bob on replica-bob was granted stock:1 at 30ms although ann on replica-ann had held it since 1ms, and then wrote."
	if got.Why.EN != why {
		t.Errorf("why: %q, want %q", got.Why, why)
	}
}

// A write of the first holder does harm even after the second holder has released the lock.
func TestOverlapEndsWithTheShorterHold(t *testing.T) {
	got := check.Exclusion(recording(t, "1 ann granted", "30 bob granted", "31 bob released", "40 ann written", "41 ann released"))
	if o := got.Overlaps[0]; o.From != 30*ms || o.To != 31*ms || !o.Acted {
		t.Errorf("%+v", o)
	}
}

func TestExclusionEndsHoldsOfKilledReplicas(t *testing.T) {
	steps := []string{"1 ann granted", "2 ann read", "30 bob granted", "31 bob released"}
	tests := []struct {
		name string
		rec  history.Recording
		idle int
		to   int // end of the overlap, ms
	}{
		{"killed before the next grant", killed(recording(t, steps...), "ann", 10*ms, 40*ms), 0, 0},
		{"killed at the moment of the next grant", killed(recording(t, steps...), "ann", 30*ms, 40*ms), 0, 0},
		{"killed after the next grant", killed(recording(t, steps...), "ann", 31*ms, 40*ms), 1, 31},
		{"killed twice, the first time counts", killed(killed(recording(t, steps...), "ann", 20*ms, 21*ms), "ann", 31*ms, 32*ms), 0, 0},
		{"another replica was killed", killed(recording(t, steps...), "cat", 10*ms, 40*ms), 1, 31},
		{"killed before it was granted", killed(recording(t, steps...), "ann", 0, 0), 1, 31},
		{"not killed, stopped", history.Recording{
			Events: recording(t, steps...).Events,
			Spans:  []history.Span{{What: "stopped replica-ann", Who: "replica-ann", From: 10 * ms, To: 40 * ms}},
		}, 1, 31},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.Exclusion(tt.rec)
			if got.Holds != 2 || got.Idle != tt.idle || got.Verdict != api.Holds {
				t.Fatalf("%+v, want %d idle", got, tt.idle)
			}
			if tt.idle == 1 && (got.Overlaps[0].From != 30*ms || got.Overlaps[0].To != ms*31) {
				t.Errorf("%+v, want 30 ms to %d ms", got.Overlaps[0], tt.to)
			}
		})
	}
}

func TestExclusionOfEachKeySeparately(t *testing.T) {
	rec := recording(t, "1 ann granted", "2 bob granted", "3 ann written", "4 bob written", "5 bob released", "6 ann released")
	for i := range rec.Events {
		if rec.Events[i].Owner == "bob" {
			rec.Events[i].Key = "stock:2"
		}
	}
	if got := check.Exclusion(rec); got.Verdict != api.Holds || got.Holds != 2 || len(got.Overlaps) != 0 {
		t.Errorf("two keys, %+v", got)
	}
}

// An owner's name on two replicas is two holders: the second one is not nested in the first.
func TestExclusionDistinguishesReplicas(t *testing.T) {
	rec := recording(t, "1 ann granted", "2 ann granted", "3 ann written", "4 ann released", "5 ann released")
	rec.Events[1].Replica, rec.Events[4].Replica = "replica-2", "replica-2"
	if got := check.Exclusion(rec); got.Verdict != api.Broken || acted(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestExclusionBoundsTheIdlePairs(t *testing.T) {
	var steps []string
	for i := range 60 {
		steps = append(steps, fmt.Sprintf("%d owner-%d granted", i, i))
	}
	steps = append(steps, "60 owner-0 written")
	got := check.Exclusion(recording(t, steps...))
	if acted(got) != 59 || got.Idle != 60*59/2-59 || len(got.Overlaps) != 59+100 {
		t.Errorf("%d harmful, %d idle, %d listed", acted(got), got.Idle, len(got.Overlaps))
	}
	if !strings.HasPrefix(got.Why.EN, "owner-1 on") {
		t.Error(got.Why.EN)
	}
}
