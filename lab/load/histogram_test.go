package load

import (
	"os"
	"testing"
	"time"

	"oversell/lab/history"
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

// TestSumOfHistograms divides the requests of all recorded runs between two histograms, the slow ones
// to the second. The percentiles of the sum are those of one histogram of all requests. The averages
// of the two percentiles are not.
func TestSumOfHistograms(t *testing.T) {
	compressed, err := os.ReadFile("../../docs/recorded/runs.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct{ Recording history.Recording }
	if err := history.Decompress(compressed, &runs); err != nil {
		t.Fatal(err)
	}
	var union, fast, slow Histogram
	for _, run := range runs {
		for _, op := range run.Recording.Ops {
			bucket := bucketOf(op.Elapsed())
			union[bucket]++
			if op.Elapsed() < 100*time.Millisecond {
				fast[bucket]++
			} else {
				slow[bucket]++
			}
		}
	}
	sum := Sum([]Progress{{Took: fast, Done: 1, Replicas: map[string]int{"a": 2}}, {Took: slow, Done: 2, Replicas: map[string]int{"a": 3, "b": 1}}})
	if sum.Took != union || sum.Done != 3 || sum.Replicas["a"] != 5 || sum.Replicas["b"] != 1 {
		t.Errorf("the sum is %+v", sum)
	}
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 1} {
		if sum.Took.Quantile(q) != union.Quantile(q) {
			t.Errorf("quantile %v is %v, of the union %v", q, sum.Took.Quantile(q), union.Quantile(q))
		}
	}
	if average := (fast.Quantile(0.5) + slow.Quantile(0.5)) / 2; average == union.Quantile(0.5) {
		t.Errorf("the average of the medians is %v, also the median of the union: the recording cannot tell them apart", average)
	}
}
