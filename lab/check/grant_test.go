package check_test

import (
	"testing"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
)

func TestNextGrant(t *testing.T) {
	const since, bound = 100 * ms, 50 * ms
	tests := []struct {
		name    string
		steps   []string
		verdict check.Verdict
		event   int
		took    time.Duration
	}{
		// Good histories.
		{"the lease runs out", []string{"10 ann granted", "20 bob asked", "140 bob granted"}, check.Holds, 2, 40 * ms},
		{"at once", []string{"10 ann granted", "20 bob asked", "100 bob granted"}, check.Holds, 2, 0},
		{"at the last moment", []string{"20 bob asked", "150 bob granted"}, check.Holds, 1, 50 * ms},
		{"the first of two", []string{"20 bob asked", "30 cat asked", "110 cat granted", "120 bob granted"}, check.Holds, 2, 10 * ms},
		{"who came after the fault", []string{"110 bob asked", "120 bob granted"}, check.Holds, 1, 20 * ms},
		{"the asking was not told", []string{"120 bob granted"}, check.Holds, 0, 20 * ms},
		{"bob had it before, too", []string{"10 bob granted", "20 bob released", "130 bob asked", "140 bob granted"}, check.Holds, 3, 40 * ms},

		// Bad histories.
		{"too late", []string{"20 bob asked", "151 bob granted"}, check.Violated, 1, 51 * ms},
		{"never", []string{"20 bob asked", "150 cat asked"}, check.Violated, -1, 0},
		{"only the victim", []string{"20 bob asked", "110 ann granted", "150 ann released"}, check.Violated, -1, 0},
		{"the victim first, bob too late", []string{"20 bob asked", "110 ann granted", "160 bob granted"}, check.Violated, 2, 60 * ms},
		{"granted before the fault, and cat waits", []string{"20 bob asked", "30 cat asked", "99 bob granted", "150 bob released"}, check.Violated, -1, 0},
		{"in the queue", []string{"20 bob queued", "150 ann released"}, check.Violated, -1, 0},

		// Nothing to see.
		{"nothing happened", nil, check.Undecided, -1, 0},
		{"only the victim wants it", []string{"10 ann granted", "120 ann asked", "200 ann released"}, check.Undecided, -1, 0},
		{"who wanted it had it", []string{"20 bob asked", "30 bob granted", "40 bob released", "200 ann released"}, check.Undecided, -1, 0},
		{"wanted too late", []string{"160 bob asked", "161 bob granted"}, check.Undecided, 1, 61 * ms},
		{"the recording ends too early", []string{"20 bob asked", "149 cat asked"}, check.Undecided, -1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.NextGrant(told(t, tt.steps...), key, "ann", since, bound)
			if got.Verdict != tt.verdict || got.Event != tt.event || got.Took != tt.took || got.Why == "" {
				t.Errorf("%+v, want %s, event %d, %v", got, tt.verdict, tt.event, tt.took)
			}
			if (got.Owner != "") != (tt.event >= 0) {
				t.Errorf("event %d is %q's", tt.event, got.Owner)
			}
		})
	}
}

func TestNextGrantOfAnotherKey(t *testing.T) {
	rec := told(t, "20 bob asked", "110 cat granted", "200 cat released")
	rec.Events[1].Key = "stock:2"
	if got := check.NextGrant(rec, key, "ann", 100*ms, 50*ms); got.Verdict != check.Violated {
		t.Errorf("a grant of stock:2 is none of stock:1: %+v", got)
	}
	if got := check.NextGrant(rec, "stock:2", "ann", 100*ms, 50*ms); got.Verdict != check.Holds || got.Owner != "cat" {
		t.Errorf("%+v", got)
	}
}

// When everybody waits, no step is told. The requests, and the faults, show that the
// recording went on.
func TestNextGrantInSilence(t *testing.T) {
	rec := told(t, "20 bob asked")
	judge := func(want check.Verdict) {
		t.Helper()
		if got := check.NextGrant(rec, key, "ann", 100*ms, 50*ms); got.Verdict != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	judge(check.Undecided)
	rec.Ops = []history.Op{{Call: 20 * ms, Return: 149 * ms, Outcome: history.Refused}}
	judge(check.Undecided)
	rec.Ops[0].Return = 150 * ms
	judge(check.Violated)
	rec.Ops = nil
	rec.Spans = []history.Span{{What: "killed replica-ann", Who: "replica-ann", From: 100 * ms, To: 150 * ms}}
	judge(check.Violated)
}
