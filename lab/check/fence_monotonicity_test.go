package check_test

import (
	"reflect"
	"testing"

	"oversell/lab/check"
)

func TestFences(t *testing.T) {
	fell := func(event, before int, fence, top int64) *check.FenceRegression {
		return &check.FenceRegression{Key: key, Event: event, Before: before, Fence: fence, Top: top}
	}
	tests := []struct {
		name          string
		steps         []string
		writes, falls int
		first         *check.FenceRegression
	}{
		// Good histories.
		{name: "nothing happened"},
		{name: "one write", steps: []string{"1 ann written 7"}, writes: 1},
		{name: "rising", steps: []string{"1 ann written 7", "2 bob written 8", "3 cat written 12"}, writes: 3},
		{name: "twice the same", steps: []string{"1 ann written 7", "2 ann written 7", "3 bob written 8"}, writes: 3},
		{name: "no fences at all", steps: []string{"1 ann written", "2 bob written"}},
		{name: "a write without a fence between", steps: []string{"1 ann written 7", "2 bob written 0", "3 cat written 8"}, writes: 2},
		{name: "a negative fence is none", steps: []string{"1 ann written 7", "2 bob written -1"}, writes: 1},
		{name: "only writes count", steps: []string{"1 ann written 7", "2 bob granted 6", "3 bob writing 6", "4 bob released 6"}, writes: 1},

		// Bad histories.
		{name: "a late write", writes: 3, falls: 1, first: fell(2, 1, 33, 34), steps: []string{
			"1 ann written 32", "2 bob written 34", "3 cat written 33",
		}},
		{name: "by a long way", writes: 2, falls: 1, first: fell(3, 1, 1, 1000), steps: []string{
			"1 ann granted 1", "2 bob written 1000", "3 bob released 1000", "4 ann written 1",
		}},
		{name: "rising again below the top", writes: 4, falls: 3, first: fell(1, 0, 1, 9), steps: []string{
			"1 ann written 9", "2 bob written 1", "3 cat written 2", "4 dan written 8",
		}},
		{name: "against the last of two equals", writes: 3, falls: 1, first: fell(2, 1, 8, 9), steps: []string{
			"1 ann written 9", "2 ann written 9", "3 bob written 8",
		}},
		{name: "recovered", writes: 3, falls: 1, first: fell(1, 0, 8, 9), steps: []string{
			"1 ann written 9", "2 bob written 8", "3 cat written 10",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check.Fences(told(t, tt.steps...))
			want := check.Holds
			if tt.first != nil {
				want = check.Broken
			}
			if got.Verdict != want || got.Writes != tt.writes || got.Regressions != tt.falls || !reflect.DeepEqual(got.First, tt.first) || got.Why == "" {
				t.Errorf("%+v, first %+v; want %s, %d writes, %d falls, first %+v", got, got.First, want, tt.writes, tt.falls, tt.first)
			}
		})
	}
}

func TestFencesSaysWhy(t *testing.T) {
	got := check.Fences(told(t, "30 bob written 34", "40 ann written 33"))
	const why = "ann on replica-ann wrote stock:1 with fence 33 at 40ms, after bob on replica-bob had written it with fence 34 at 30ms"
	if got.Why != why {
		t.Errorf("why: %q, want %q", got.Why, why)
	}
}

func TestFencesOfEachKeyByItself(t *testing.T) {
	rec := told(t, "1 ann written 9", "2 bob written 3", "3 bob written 4")
	rec.Events[1].Key, rec.Events[2].Key = "stock:2", "stock:2"
	if got := check.Fences(rec); got.Verdict != check.Holds || got.Writes != 3 {
		t.Errorf("%+v", got)
	}
	rec.Events[2].Fence = 2
	if got := check.Fences(rec); got.Verdict != check.Broken || got.First.Key != "stock:2" || got.First.Event != 2 || got.First.Before != 1 {
		t.Errorf("%+v, first %+v", got, got.First)
	}
}
