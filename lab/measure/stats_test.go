package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oversell/lab/history"
)

func numbers(ms ...int) []time.Duration {
	all := make([]time.Duration, len(ms))
	for i, n := range ms {
		all[i] = time.Duration(n) * time.Millisecond
	}
	return all
}

func oneTo(n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(i+1) * time.Millisecond
	}
	return all
}

func TestPercentile(t *testing.T) {
	tests := []struct {
		name   string
		sorted []time.Duration
		p      float64
		want   int // ms
	}{
		{"none", nil, 0.5, 0},
		{"one", numbers(7), 0.99, 7},
		{"one, lowest", numbers(7), 0, 7},
		{"lowest", oneTo(100), 0, 1},
		{"highest", oneTo(100), 1, 100},
		{"median of 100", oneTo(100), 0.50, 50},
		{"p90 of 100", oneTo(100), 0.90, 90},
		{"p99 of 100", oneTo(100), 0.99, 99},
		{"p99 of 1000", oneTo(1000), 0.99, 990},
		{"rank 2.5 rounds up, as JMeter's does", oneTo(5), 0.50, 3},
		{"rank 4.5 rounds up", oneTo(5), 0.90, 5},
		{"rank 1.35 rounds down", oneTo(3), 0.45, 1},
		{"never between two samples", numbers(1, 1000), 0.50, 1},
		{"ties", numbers(5, 5, 5, 9), 0.75, 5},
	}
	for _, tt := range tests {
		if got := Percentile(tt.sorted, tt.p); got != time.Duration(tt.want)*time.Millisecond {
			t.Errorf("%s: %v, want %d ms", tt.name, got, tt.want)
		}
	}
}

// TestPercentileAsJMeterCounts compares percentile with JMeter's StatCalculator, which counts
// samples in ascending order until it has passed round(count * p) of them.
func TestPercentileAsJMeterCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		samples := make([]time.Duration, 1+r.IntN(300))
		for i := range samples {
			samples[i] = time.Duration(r.IntN(50))
		}
		slices.Sort(samples)
		p := []float64{0.5, 0.9, 0.95, 0.99}[r.IntN(4)]
		target := int(math.Floor(float64(len(samples))*p + 0.5)) // Math.round
		want := samples[len(samples)-1]
		for _, s := range samples {
			if target--; target <= 0 {
				want = s
				break
			}
		}
		if got := Percentile(samples, p); got != want {
			t.Fatalf("p%v of %d samples: %v, JMeter says %v", 100*p, len(samples), got, want)
		}
	}
}

func TestMean(t *testing.T) {
	if got := mean(numbers(1, 2, 6)); got != 3*time.Millisecond {
		t.Errorf("mean %v", got)
	}
	if mean(nil) != 0 {
		t.Error("the mean of nothing")
	}
}

func TestJain(t *testing.T) {
	tests := []struct {
		x    []float64
		want float64
	}{
		{[]float64{5, 5, 5, 5}, 1},
		{[]float64{1}, 1},
		{[]float64{8, 0, 0, 0}, 0.25},
		{[]float64{4, 4, 0, 0}, 0.5},
		{[]float64{1, 2, 3}, 36.0 / 42},
		{[]float64{0, 0}, 0},
	}
	for _, tt := range tests {
		if got := jain(tt.x); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", tt.x, got, tt.want)
		}
	}
}

// at returns an answer that a client gets ms milliseconds after the start.
func at(client, ms int) history.Op {
	return history.Op{Client: client, Call: time.Duration(ms-1) * time.Millisecond, Return: time.Duration(ms) * time.Millisecond, Outcome: history.OK}
}

func TestFairnessLooksAtHalfOfTheAnswers(t *testing.T) {
	tests := []struct {
		name    string
		clients int
		loops   int
		ops     []history.Op
		want    float64
	}{
		{"abreast", 2, 2, []history.Op{at(1, 1), at(2, 1), at(1, 2), at(2, 2)}, 1},
		{"one overtakes, the other catches up later", 2, 2, []history.Op{at(1, 1), at(1, 2), at(2, 3), at(2, 4)}, 0.5},
		{"the first to finish is not far ahead", 2, 5, []history.Op{
			at(1, 1), at(2, 2), at(1, 3), at(2, 4), at(1, 5), at(1, 6), at(1, 7), at(2, 8), at(2, 9), at(2, 10),
		}, 25.0 / 26},
		{"one never came", 2, 2, []history.Op{at(1, 1), at(1, 2)}, 0.5},
		{"one loop", 2, 1, []history.Op{at(1, 1), at(2, 2)}, 0},
		{"stopped: nobody finished", 2, 100, []history.Op{at(1, 1), at(1, 2), at(2, 3), at(2, 4), at(1, 5), at(1, 6)}, 0.9},
		{"nothing", 2, 2, nil, 0},
	}
	for _, tt := range tests {
		h := history.History{Clients: tt.clients, Loops: tt.loops, Ops: tt.ops}
		if got := fairness(h); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSeriesCountsEveryAnswerOnce(t *testing.T) {
	ops := []history.Op{at(1, 1), at(1, 50), at(1, 99), at(1, 101), at(1, 250), at(1, 300)}
	ops[3].Outcome = history.Refused
	s := series(ops)
	if !slices.Equal(s.Samples, []int{3, 1, 2}) || !slices.Equal(s.Sold, []int{3, 0, 2}) || s.BucketMS != 100 || s.EndMS != 300 {
		t.Errorf("%+v", s)
	}
	if s := series(nil); len(s.Samples) != 0 {
		t.Errorf("nothing happened: %+v", s)
	}
}

func TestBucketsStayFew(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		0: 100 * time.Millisecond, 12 * time.Second: 100 * time.Millisecond, 13 * time.Second: 200 * time.Millisecond,
		25 * time.Second: 500 * time.Millisecond, time.Minute: 500 * time.Millisecond, 2 * time.Minute: time.Second,
		4 * time.Minute: 2 * time.Second, time.Hour: 50 * time.Second,
	} {
		got := bucketWidth(length)
		if got != want {
			t.Errorf("%v: %v, want %v", length, got, want)
		}
	}
}
