package load

import (
	"math"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets. Each has an upper bound at most an eighth above every
// duration in it, which is enough for a live chart.
type Histogram [buckets]int64

// Each power of two, in microseconds, has 2^subBits buckets. The last one is for durations
// above one hour.
const (
	subBits = 3
	buckets = 32 << subBits
)

func bucketOf(d time.Duration) int {
	us, power := int(max(0, d.Microseconds())), 0
	for us>>power >= 2<<subBits {
		power++
	}
	if us < 1<<subBits {
		return us
	}
	return min(buckets-1, (power+1)<<subBits+us>>power&(1<<subBits-1))
}

// bound returns the upper bound of a bucket.
func bound(bucket int) time.Duration {
	if bucket < 1<<subBits {
		return time.Duration(bucket+1) * time.Microsecond
	}
	power := bucket>>subBits - 1
	return time.Duration((1<<subBits+bucket&(1<<subBits-1)+1)<<power) * time.Microsecond
}

// Since returns the durations that were counted after the earlier state.
func (h *Histogram) Since(earlier *Histogram) (since Histogram) {
	for i := range h {
		since[i] = h[i] - earlier[i]
	}
	return since
}

// Quantile returns an upper bound of the fraction q of all durations. Without any, it is 0.
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

// atomicHistogram is a histogram for concurrent use.
type atomicHistogram [buckets]atomic.Int64

func (a *atomicHistogram) add(d time.Duration) { a[bucketOf(d)].Add(1) }

func (a *atomicHistogram) read() (h Histogram) {
	for i := range a {
		h[i] = a[i].Load()
	}
	return h
}
