package report

import (
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/lab/history"
)

// HLog writes the latencies of each history in the log format of HdrHistogram, for its analysers: a histogram of
// nanoseconds for each second in which answers came, with the strategy as its tag. In an open loop, a latency counts
// from the time at which the request was due.
func HLog(w io.Writer, histories []history.History) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	failed := log.OutputLogFormatVersion()
	if len(histories) > 0 {
		failed = errors.Join(failed, log.OutputStartTime(histories[0].Start.UnixMilli()))
	}
	failed = errors.Join(failed, log.OutputLegend())
	for _, h := range histories {
		seconds := map[int]*hdrhistogram.Histogram{}
		last := 0
		for i := range h.Ops {
			op := &h.Ops[i]
			at := int(op.Return / time.Second)
			last = max(last, at)
			if seconds[at] == nil {
				seconds[at] = hdrhistogram.New(1, int64(time.Hour), 3)
				seconds[at].SetTag(h.Strategy)
				from := h.Start.Add(time.Duration(at) * time.Second).UnixMilli()
				seconds[at].SetStartTimeMs(from)
				seconds[at].SetEndTimeMs(from + time.Second.Milliseconds())
			}
			failed = errors.Join(failed, seconds[at].RecordValue(max(1, int64(op.Elapsed()))))
		}
		for at := range last + 1 {
			if seconds[at] != nil {
				failed = errors.Join(failed, log.OutputIntervalHistogram(seconds[at]))
			}
		}
	}
	return failed
}
