package report_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/lab/history"
	"oversell/view/report"
)

// TestHLog reads the log with HdrHistogram: the latencies of all seconds together have our 99th percentile, from the
// time at which a request was due.
func TestHLog(t *testing.T) {
	t.Parallel()
	h := history.History{Strategy: "redis", Start: time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)}
	for i := range 2000 {
		due := time.Duration(i) * time.Millisecond
		h.Ops = append(h.Ops, history.Op{Due: due, Call: due + 5*time.Millisecond, Return: due + time.Duration(i+6)*time.Millisecond})
	}
	var log bytes.Buffer
	if err := report.HLog(&log, []history.History{h}); err != nil {
		t.Fatal(err)
	}
	reader := hdrhistogram.NewHistogramLogReader(&log)
	all, seconds := hdrhistogram.New(1, int64(time.Hour), 3), 0
	for {
		next, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			break
		}
		if next.Tag() != "redis" || next.EndTimeMs()-next.StartTimeMs() != 1000 {
			t.Errorf("tag %q, from %d to %d", next.Tag(), next.StartTimeMs(), next.EndTimeMs())
		}
		seconds++
		all.Merge(next)
	}
	got, want := float64(all.ValueAtQuantile(99)), float64((1979+6)*time.Millisecond)
	if all.TotalCount() != 2000 || seconds != 5 || math.Abs(got-want) > want/100 {
		t.Errorf("%d latencies in %d seconds, p99 %v, want %v", all.TotalCount(), seconds, time.Duration(got), time.Duration(want))
	}
}
