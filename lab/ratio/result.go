package ratio

import (
	"fmt"

	"golang.org/x/perf/benchmath"
)

// confidence is the least probability with which an interval contains the median. An exact interval of few values has
// a higher one.
const confidence = 0.95

// Fewest is the least number of values whose median has such an interval.
const Fewest = 6

// Interval is a median, and the exact interval of it that assumes nothing about the distribution. With fewer values
// than Fewest it is infinite.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Values int     `json:"values"` // the number of them
}

// Bounds returns the ends of the interval as text, with so many digits after the point.
func (i Interval) Bounds(digits int) string {
	return fmt.Sprintf("%.*f–%.*f", digits, i.Low, digits, i.High)
}

// Text returns the median, and its interval in brackets.
func (i Interval) Text(digits int) string {
	return fmt.Sprintf("%.*f (%s)", digits, i.Median, i.Bounds(digits))
}

// Of returns the median of values and its interval.
func Of(values []float64) Interval {
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), confidence)
	return Interval{s.Center, s.Lo, s.Hi, len(values)}
}

// Result compares two sides.
type Result struct {
	A      string  `json:"a"`
	B      string  `json:"b"`
	Within float64 `json:"within"` // the wanted width
	Seed   int64   `json:"seed"`
	Pairs  []Pair  `json:"pairs"` // the raw values

	RateA Interval `json:"rate_a"`
	RateB Interval `json:"rate_b"`
	Ratio Interval `json:"ratio"` // of A's rate to B's in each pair
	P     float64  `json:"p"`     // of the Mann-Whitney U test: the probability of such rates if both sides are alike
}

// compute computes the figures from the pairs.
func (r *Result) compute() {
	a, b, ratios := make([]float64, len(r.Pairs)), make([]float64, len(r.Pairs)), make([]float64, len(r.Pairs))
	for i, pair := range r.Pairs {
		a[i], b[i], ratios[i] = pair.A.Rate, pair.B.Rate, pair.A.Rate/pair.B.Rate
	}
	r.RateA, r.RateB, r.Ratio, r.P = Of(a), Of(b), Of(ratios), different(a, b)
}

// different returns the probability of such values if both sides are alike, by the Mann-Whitney U test.
func different(a, b []float64) float64 {
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(values, &benchmath.DefaultThresholds)
	}
	return benchmath.AssumeNothing.Compare(sample(a), sample(b)).P
}

// Paired compares the rates of two sides that were measured in turn.
func Paired(a, b string, ratesA, ratesB []float64) Result {
	r := Result{A: a, B: b}
	for i, rate := range ratesA {
		r.Pairs = append(r.Pairs, Pair{A: Round{Rate: rate}, B: Round{Rate: ratesB[i]}})
	}
	r.compute()
	return r
}

// Apart compares rounds that were not measured in pairs. The interval of the ratio is then wider: it comes from the
// ends of both intervals.
func Apart(a, b string, roundsA, roundsB []Round) Result {
	rates := func(rounds []Round) (all []float64) {
		for _, round := range rounds {
			all = append(all, round.Rate)
		}
		return all
	}
	r := Result{A: a, B: b, RateA: Of(rates(roundsA)), RateB: Of(rates(roundsB)), P: different(rates(roundsA), rates(roundsB))}
	r.Ratio = Interval{Median: r.RateA.Median / r.RateB.Median, Low: r.RateA.Low / r.RateB.High, High: r.RateA.High / r.RateB.Low}
	return r
}

// Load returns the median share of the cores that the load took.
func (r Result) Load() float64 { return r.share(func(round Round) float64 { return round.Load }) }

// Others returns the median share of the cores that other processes took.
func (r Result) Others() float64 { return r.share(func(round Round) float64 { return round.Others }) }

func (r Result) share(of func(Round) float64) float64 {
	var all []float64
	for _, pair := range r.Pairs {
		all = append(all, of(pair.A), of(pair.B))
	}
	return Of(all).Median
}

// Narrow reports whether the interval of the ratio is as narrow as wanted.
func (r Result) Narrow() bool { return r.Ratio.High-r.Ratio.Low <= r.Within*r.Ratio.Median }

// Differs reports whether the rates differ: the interval of the ratio does not contain 1, and the U test finds a
// difference, too. So a difference is shown in fewer than 5 of 100 comparisons of a side with itself.
func (r Result) Differs() bool {
	return r.P < 1-confidence && (len(r.Pairs) == 0 || r.Ratio.Low > 1 || r.Ratio.High < 1)
}
