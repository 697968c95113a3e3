package load

import (
	"testing"
	"time"
)

func TestHistogramIsAnEighthTooHighAtMost(t *testing.T) {
	for d := time.Microsecond; d < time.Hour; d = d*21/20 + time.Microsecond {
		var h Histogram
		h[bucketOf(d)]++
		got := h.Quantile(0.5)
		if whole := d.Truncate(time.Microsecond); got <= whole || float64(got) > 1.125*float64(whole)+float64(time.Microsecond) {
			t.Errorf("%v is counted as %v", d, got)
		}
	}
}

func TestHistogramSince(t *testing.T) {
	var c atomicHistogram
	for range 99 {
		c.add(time.Millisecond)
	}
	before := c.read()
	if before.Quantile(0.99) > 2*time.Millisecond {
		t.Errorf("the 99th percentile of 99 durations of 1 ms is %v", before.Quantile(0.99))
	}
	c.add(time.Second)
	after := c.read()
	if one := after.Since(&before); one.Quantile(0.01) < time.Second || after.Quantile(1) < time.Second || after.Quantile(0.5) > 2*time.Millisecond {
		t.Errorf("one duration of 1 s after 99 of 1 ms: %v, %v, %v", one.Quantile(0.01), after.Quantile(1), after.Quantile(0.5))
	}
	if new(Histogram).Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}
