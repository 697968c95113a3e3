package ratio_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oversell/lab/ratio"
)

// noisy returns a side whose rate drifts with the machine and varies by 3 % from round to round.
func noisy(random *rand.Rand, machine *float64, rate float64) ratio.Subject {
	return ratio.Subject{Name: "side", Round: func(context.Context) (ratio.Round, error) {
		*machine *= 1 + 0.02*random.NormFloat64()
		return ratio.Round{Rate: rate * *machine * (1 + 0.03*random.NormFloat64())}, nil
	}}
}

// TestMeasure compares a side with itself, and with one that is a tenth slower, many times: on a machine that drifts,
// at most 5 of 100 comparisons may show a difference that is none, and at least 90 of 100 must show one that is.
func TestMeasure(t *testing.T) {
	t.Parallel()
	const times = 400
	for _, test := range []struct {
		slower        float64
		least, most   int
		narrowAtLeast int
	}{{1, 0, times * 5 / 100, times}, {0.9, times * 90 / 100, times, times}} {
		found, narrow := 0, 0
		for seed := range times {
			random, machine := rand.New(rand.NewPCG(uint64(seed), 7)), 1.0 //nolint:gosec // no secrets
			plan := ratio.Plan{Within: 0.05, Least: 10, Limit: time.Minute, Quiet: 0.1, Seed: int64(seed)}
			r, err := ratio.Measure(t.Context(), plan, noisy(random, &machine, 1000), noisy(random, &machine, 1000*test.slower), func(ratio.Result) {})
			if err != nil {
				t.Fatal(err)
			}
			if r.Differs() {
				found++
			}
			if r.Narrow() {
				narrow++
			}
		}
		if found < test.least || found > test.most || narrow < test.narrowAtLeast {
			t.Errorf("times %v: a difference in %d of %d, want %d to %d; narrow %d", test.slower, found, times, test.least, test.most, narrow)
		}
		t.Logf("times %v: a difference in %d of %d", test.slower, found, times)
	}
}

// TestOrder checks that the order within pairs is drawn, the same for the same seed.
func TestOrder(t *testing.T) {
	t.Parallel()
	orders := func(seed int64) (first []bool) {
		side := ratio.Subject{Round: func(context.Context) (ratio.Round, error) { return ratio.Round{Rate: 1}, nil }}
		r, err := ratio.Measure(t.Context(), ratio.Plan{Within: 1, Least: 64, Seed: seed}, side, side, func(ratio.Result) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range r.Pairs {
			first = append(first, pair.BFirst)
		}
		return first
	}
	count := 0
	for i, b := range orders(1) {
		if b {
			count++
		}
		if b != orders(1)[i] {
			t.Fatal("another order with the same seed")
		}
	}
	if count < 16 || count > 48 {
		t.Errorf("B came first in %d of 64 pairs", count)
	}
}

// TestDisturbed checks that a round on a busy machine is repeated, and that a failed round ends the comparison.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	rounds, broken := 0, errors.New("no answer")
	busy := ratio.Subject{Name: "busy", Round: func(context.Context) (ratio.Round, error) {
		rounds++
		return ratio.Round{Rate: 1, Others: map[bool]float64{true: 0.5}[rounds%2 == 1]}, nil
	}}
	failing := ratio.Subject{Name: "failing", Round: func(context.Context) (round ratio.Round, err error) {
		if rounds > 10 {
			err = broken
		}
		return ratio.Round{Rate: 2}, err
	}}
	r, err := ratio.Measure(t.Context(), ratio.Plan{Least: 100, Quiet: 0.1}, busy, failing, func(ratio.Result) {})
	if !errors.Is(err, broken) || len(r.Pairs) == 0 || r.Pairs[0].Discarded != 1 || r.Pairs[0].A.Others != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOf checks the interval of ten values: exact, it goes from the second to the ninth.
func TestOf(t *testing.T) {
	t.Parallel()
	if got := ratio.Of([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}); got.Low != 2 || got.High != 9 || math.Abs(got.Median-5.5) > 0.5 {
		t.Errorf("%+v", got)
	}
	if got := ratio.Of([]float64{1, 2, 3, 4, 5}); !math.IsInf(got.Low, -1) {
		t.Errorf("five values: %+v, want no interval", got)
	}
}
