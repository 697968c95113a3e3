package measure

import (
	"cmp"
	"math"
	"slices"
	"time"

	"oversell/lab/history"
)

// maxBuckets limits the buckets, so that a chart stays legible.
const maxBuckets = 120

// Percentile returns the nearest rank of p, from 0 to 1, in sorted times, rounded as in JMeter's aggregate report, not interpolated.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Floor(float64(len(sorted))*p + 0.5))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func mean(samples []time.Duration) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	var sum float64
	for _, s := range samples {
		sum += float64(s)
	}
	return time.Duration(sum / float64(len(samples)))
}

func times(ops []history.Op, of func(*history.Op) time.Duration) []time.Duration {
	all := make([]time.Duration, len(ops))
	for i := range ops {
		all[i] = of(&ops[i])
	}
	slices.Sort(all)
	return all
}

func spread(sorted []time.Duration) Spread {
	return Spread{
		Mean: millis(mean(sorted)), P50: millis(Percentile(sorted, 0.50)),
		P99: millis(Percentile(sorted, 0.99)), Max: millis(Percentile(sorted, 1)),
	}
}

func millis(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 3) }

func round(x float64, digits int) float64 {
	shift := math.Pow10(digits)
	return math.Round(x*shift) / shift
}

// Ratio returns a/b, or 0 if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func span(ops []history.Op) (first, last time.Duration) {
	if len(ops) == 0 {
		return 0, 0
	}
	first = ops[0].Call
	for i := range ops {
		first, last = min(first, ops[i].Call), max(last, ops[i].Return)
	}
	return first, last
}

// fairness returns Jain's index of the clients' progress: sum(x)^2 / (n sum(x^2)). It looks when half of all answers
// have come, because in the end all clients have the same number of them. The index is 1 if all clients progressed
// equally, and 1/n if only one did. Clients before their start in a ramp-up count as without progress. With one loop it
// means nothing, and is 0. In an open loop, it shows how evenly the connections were used.
func fairness(h history.History) float64 {
	if h.Loops == 1 {
		return 0
	}
	answers := slices.SortedFunc(slices.Values(h.Ops), func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	progress := make([]float64, max(h.Clients, 1))
	for _, op := range answers[:(len(answers)+1)/2] {
		if op.Client <= len(progress) {
			progress[op.Client-1]++
		}
	}
	return jain(progress)
}

func jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return Ratio(sum*sum, float64(len(x))*squares)
}

func series(ops []history.Op) Series {
	first, last := span(ops)
	width := bucketWidth(last - first)
	n := int((last - first + width - 1) / width)
	s := Series{BucketMS: millis(width), EndMS: millis(last - first), Samples: make([]int, n), Sold: make([]int, n)}
	for i := range ops {
		b := min(int((ops[i].Return-first)/width), n-1)
		s.Samples[b]++
		if ops[i].Outcome == history.OK {
			s.Sold[b]++
		}
	}
	return s
}

func bucketWidth(length time.Duration) time.Duration {
	width := 100 * time.Millisecond
	for i := 0; length > maxBuckets*width; i++ {
		width = width * []time.Duration{2, 5, 2}[i%3] / []time.Duration{1, 2, 1}[i%3]
	}
	return width
}
