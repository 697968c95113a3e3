// Package ratio measures the ratio of two rates: in pairs of rounds, the order drawn for each pair, until the interval
// of the ratio is narrow enough. What slows the machine down for minutes then slows both.
package ratio

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Subject is one side of a comparison. Round measures it once.
type Subject struct {
	Name  string
	Round func(context.Context) (Round, error)
}

// Round is one measurement.
type Round struct {
	Rate   float64 `json:"rate"`   // pieces sold in a second
	P99MS  float64 `json:"p99_ms"` // of the latencies, in milliseconds
	Others float64 `json:"others"` // share of the cores that other processes took, 0 to 1
	Load   float64 `json:"load"`   // share of the cores that the load itself took
}

// Pair is a round of each side.
type Pair struct {
	A      Round `json:"a"`
	B      Round `json:"b"`
	BFirst bool  `json:"b_first"`
	// Discarded is the number of rounds that were repeated, because other processes used the machine.
	Discarded int `json:"discarded,omitempty"`
}

// Plan says how long to measure.
type Plan struct {
	Within float64       // the wanted width of the ratio's interval, divided by the ratio, such as 0.05
	Least  int           // the least number of pairs
	Limit  time.Duration // no pair begins after this time, unless there are fewer than Least
	Quiet  float64       // a round is repeated if other processes took a larger share of the cores
	Seed   int64         // draws the order in each pair
}

// mostTries limits how often a round is repeated on a busy machine. Then it counts.
const mostTries = 3

// Measure measures a and b in turn. It calls done after each pair. An error keeps the pairs until then.
func Measure(ctx context.Context, p Plan, a, b Subject, done func(Result)) (Result, error) {
	result := Result{A: a.Name, B: b.Name, Within: p.Within, Seed: p.Seed}
	random := rand.New(rand.NewPCG(uint64(p.Seed), 0)) //nolint:gosec // an order, no secret
	for began := time.Now(); ; {
		order := random.Perm(2)
		pair := Pair{BFirst: order[0] == 1}
		for _, i := range order {
			subject := [2]Subject{a, b}[i]
			round, err := pair.quiet(ctx, p.Quiet, subject)
			if err != nil {
				return result, fmt.Errorf("%s: %w", subject.Name, err)
			}
			*[2]*Round{&pair.A, &pair.B}[i] = round
		}
		result.Pairs = append(result.Pairs, pair)
		result.compute()
		done(result)
		if len(result.Pairs) >= p.Least && (result.Narrow() || time.Since(began) > p.Limit) {
			return result, nil
		}
	}
}

// quiet repeats a round that other processes disturbed.
func (pair *Pair) quiet(ctx context.Context, most float64, s Subject) (round Round, err error) {
	for try := 1; ; try++ {
		if round, err = s.Round(ctx); err != nil || round.Others <= most || try == mostTries {
			return round, err
		}
		pair.Discarded++
	}
}
