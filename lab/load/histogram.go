package load

import (
	"math"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets, whose upper bound is at most about an eighth too high.
type Histogram [buckets]int64

// Each power of two, in microseconds, has eight buckets. The last bucket is for more than an hour.
const (
	perPower = 8
	buckets  = 32 * perPower
)

func bucketOf(d time.Duration) int {
	us := float64(max(0, d.Microseconds()))
	return min(buckets-1, int(perPower*math.Log2(1+us)))
}

func bound(bucket int) time.Duration {
	return time.Duration((math.Exp2(float64(bucket+1)/perPower) - 1) * float64(time.Microsecond))
}

// Since returns the durations in h that are not in earlier, an older copy of h.
func (h *Histogram) Since(earlier *Histogram) (since Histogram) {
	for i := range h {
		since[i] = h[i] - earlier[i]
	}
	return since
}

// Quantile returns an upper bound of the fraction q of all durations, or 0 without durations.
func (h *Histogram) Quantile(q float64) time.Duration {
	var all int64
	for _, n := range h {
		all += n
	}
	rank := max(1, int64(math.Ceil(q*float64(all))))
	for i, n := range h {
		if rank -= n; rank <= 0 {
			return bound(i)
		}
	}
	return 0
}

type atomicHistogram [buckets]atomic.Int64

func (a *atomicHistogram) add(d time.Duration) { a[bucketOf(d)].Add(1) }

func (a *atomicHistogram) read() (h Histogram) {
	for i := range a {
		h[i] = a[i].Load()
	}
	return h
}
