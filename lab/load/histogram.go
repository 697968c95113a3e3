package load

import (
	"math"
	"sync/atomic"
	"time"
)

// Histogram counts durations, each in the cell that is at most an eighth wider than it:
// for a picture that moves, not for a report.
type Histogram [cells]int64

// Eight cells for each power of two, in microseconds, up to more than an hour.
const (
	parts = 3 // bits
	cells = 32 << parts
)

// cell is where a duration is counted.
func cell(d time.Duration) int {
	us, power := int(max(0, d.Microseconds())), 0
	for us>>power >= 2<<parts {
		power++
	}
	if us < 1<<parts {
		return us
	}
	return min(cells-1, (power+1)<<parts+us>>power&(1<<parts-1))
}

// limit is where a cell ends.
func limit(cell int) time.Duration {
	if cell < 1<<parts {
		return time.Duration(cell+1) * time.Microsecond
	}
	power := cell>>parts - 1
	return time.Duration((1<<parts+cell&(1<<parts-1)+1)<<power) * time.Microsecond
}

// Since is what was counted after an earlier state of it.
func (h *Histogram) Since(earlier *Histogram) (since Histogram) {
	for i := range h {
		since[i] = h[i] - earlier[i]
	}
	return since
}

// Quantile is below which q of all durations are, 0 when there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	var all int64
	for _, n := range h {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank := max(1, int64(math.Ceil(q*float64(all))))
	for i, n := range h {
		if rank -= n; rank <= 0 {
			return limit(i)
		}
	}
	return limit(cells - 1)
}

// counters are a histogram that many goroutines add to.
type counters [cells]atomic.Int64

func (c *counters) add(d time.Duration) { c[cell(d)].Add(1) }

func (c *counters) read() (h Histogram) {
	for i := range c {
		h[i] = c[i].Load()
	}
	return h
}
