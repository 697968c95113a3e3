package check_test

import (
	"fmt"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/check"
)

func TestFences(t *testing.T) {
	for _, tt := range []struct {
		name         string
		steps        []string
		writes       int
		late, higher int // indices of the first regression; both 0 if there is none
	}{
		// These histories keep the invariant.
		{name: "nothing happened"},
		{name: "one write", steps: []string{"1 ann written 7"}, writes: 1},
		{name: "rising", steps: []string{"1 ann written 7", "2 bob written 8", "3 cat written 12"}, writes: 3},
		{name: "twice the same", steps: []string{"1 ann written 7", "2 ann written 7", "3 bob written 8"}, writes: 3},
		{name: "no fences at all", steps: []string{"1 ann written", "2 bob written"}},
		{name: "a write without a fence between", steps: []string{"1 ann written 7", "2 bob written 0", "3 cat written 8"}, writes: 2},
		{name: "a negative fence is none", steps: []string{"1 ann written 7", "2 bob written -1"}, writes: 1},
		{name: "only writes count", steps: []string{"1 ann written 7", "2 bob granted 6", "3 bob writing 6", "4 bob released 6"}, writes: 1},

		// These histories break the invariant.
		{name: "a late write", writes: 3, late: 2, higher: 1, steps: []string{
			"1 ann written 32", "2 bob written 34", "3 cat written 33",
		}},
		{name: "far below", writes: 2, late: 3, higher: 1, steps: []string{
			"1 ann granted 1", "2 bob written 1000", "3 bob released 1000", "4 ann written 1",
		}},
		{name: "rising again below the top", writes: 4, late: 1, higher: 0, steps: []string{
			"1 ann written 9", "2 bob written 1", "3 cat written 2", "4 dan written 8",
		}},
		{name: "below the last of two equals", writes: 3, late: 2, higher: 1, steps: []string{
			"1 ann written 9", "2 ann written 9", "3 bob written 8",
		}},
		{name: "recovered", writes: 3, late: 1, higher: 0, steps: []string{
			"1 ann written 9", "2 bob written 8", "3 cat written 10",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := recording(t, tt.steps...)
			got := check.Fences(rec)
			want := check.FenceMonotonicity{Writes: tt.writes, Verdict: api.Holds, Why: got.Why}
			if tt.late > 0 {
				want.Verdict = api.Broken
				late, higher := rec.Events[tt.late], rec.Events[tt.higher]
				if !strings.HasPrefix(got.Why.EN, late.Owner+" ") || !strings.HasSuffix(got.Why.EN, fmt.Sprintf("with fence %d at %v.", higher.Fence, higher.At)) {
					t.Errorf("why: %q", got.Why.EN)
				}
			}
			if got != want || got.Why.ZH == "" {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestFencesSaysWhy(t *testing.T) {
	got := check.Fences(recording(t, "30 bob written 34", "40 ann written 33"))
	const why = "ann on replica-ann wrote stock:1 with fence 33 at 40ms, after bob on replica-bob had written it with fence 34 at 30ms."
	if got.Why.EN != why {
		t.Errorf("why: %q, want %q", got.Why, why)
	}
}

func TestFencesOfEachKeySeparately(t *testing.T) {
	rec := recording(t, "1 ann written 9", "2 bob written 3", "3 bob written 4")
	rec.Events[1].Key, rec.Events[2].Key = "stock:2", "stock:2"
	if got := check.Fences(rec); got.Verdict != api.Holds || got.Writes != 3 {
		t.Errorf("%+v", got)
	}
	rec.Events[2].Fence = 2
	if got := check.Fences(rec); got.Verdict != api.Broken || !strings.HasPrefix(got.Why.EN, "bob ") {
		t.Errorf("%+v", got)
	}
}
