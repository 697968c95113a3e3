package comparison_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"oversell/lab/comparison"
	"oversell/lab/load"
)

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		from, to int
		want     []int
	}{
		{1, 500, []int{1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{1, 1, []int{1}},
		{3, 4, []int{3, 4}},
		{3, 40, []int{3, 5, 10, 20, 40}},
		{2000, 10_000, []int{2000, 5000, 10_000}},
	} {
		if got := comparison.Steps(tt.from, tt.to); !slices.Equal(got, tt.want) {
			t.Errorf("%d..%d: %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

// Each run of a sweep starts with new stock, and does not sell out.
func TestSweep(t *testing.T) {
	resets := 0
	_, plan := start(t, &fakeService{onReset: func(*fakeService) { resets++ }})
	plan.Strategies, plan.Sweep, plan.Loops, plan.Stock = []string{"redis", "none"}, comparison.Steps(1, 2), 1, 0
	var w recorder
	measurements, err := comparison.Run(t.Context(), plan, &w)
	if err != nil || len(measurements) != 4 || resets != 5 {
		t.Fatalf("%d measurements, %d resets, %v; want 4 and 5: the last one restores the stock", len(measurements), resets, err)
	}
	for i, clients := range []int{1, 2, 1, 2} {
		r := measurements[i].Result
		if r.Clients != clients || r.SoldOut > 0 || r.Partial || r.Sold == 0 || r.Stock < r.Sold {
			t.Errorf("run %d: %d clients, %d sold of %d, %d sold out, partial %v", i, r.Clients, r.Sold, r.Stock, r.SoldOut, r.Partial)
		}
	}
	if got := strings.Join(w.calls, ", "); !strings.HasPrefix(got, "begin redis x1 1/4, end redis, begin redis x2 2/4") {
		t.Errorf("calls: %s", got)
	}
	plan.Sweep = []int{0}
	if _, err := comparison.Run(t.Context(), plan, &w); !errors.Is(err, load.ErrPlan) || !strings.HasPrefix(err.Error(), "sweep: clients 0: ") {
		t.Errorf("%v", err)
	}
}

// The rate and the quantity are passed to the load and to the report.
func TestOpenLoopPlan(t *testing.T) {
	_, plan := start(t, &fakeService{})
	plan.Strategies, plan.Rate, plan.Qty = []string{"redis"}, 1000, 1
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil || len(measurements) != 1 {
		t.Fatal(measurements, err)
	}
	if r := measurements[0].Result; r.Open == nil || r.Open.DuePerS != 1000 || r.Sold != 20 || measurements[0].History.Ops[0].Due == 0 {
		t.Errorf("%+v", r)
	}
	plan.Qty = 101
	if _, err := comparison.Run(t.Context(), plan, &recorder{}); !errors.Is(err, load.ErrPlan) || !strings.HasPrefix(err.Error(), "qty 101: ") {
		t.Errorf("%v", err)
	}
}
