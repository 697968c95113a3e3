package load

import (
	"testing"
	"time"
)

func TestHistogramIsAnEighthTooHighAtMost(t *testing.T) {
	for d := time.Microsecond; d < time.Hour; d = d*21/20 + time.Microsecond {
		var h Histogram
		h[cell(d)]++
		got := h.Quantile(0.5)
		if whole := d.Truncate(time.Microsecond); got <= whole || float64(got) > 1.125*float64(whole)+float64(time.Microsecond) {
			t.Errorf("%v is counted as %v", d, got)
		}
	}
}

func TestHistogramSince(t *testing.T) {
	var c counters
	for range 99 {
		c.add(time.Millisecond)
	}
	before := c.read()
	if before.Quantile(0.99) > 2*time.Millisecond {
		t.Errorf("99%% of 99 short ones are below %v", before.Quantile(0.99))
	}
	c.add(time.Second)
	after := c.read()
	if one := after.Since(&before); one.Quantile(0.01) < time.Second || after.Quantile(1) < time.Second || after.Quantile(0.5) > 2*time.Millisecond {
		t.Errorf("one long one among many: %v, %v, %v", one.Quantile(0.01), after.Quantile(1), after.Quantile(0.5))
	}
	if new(Histogram).Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}
