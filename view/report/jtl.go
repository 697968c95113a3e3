package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"oversell/lab/history"
	"oversell/lab/measure"
)

// JTL writes each history by the samples' ends, for JMeter's listeners and jmeter -g. As in our
// JMeter plans, sold out is a label and no error. A sample of an open loop begins when due.
func JTL(w io.Writer, histories []history.History) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{ // the columns that JMeter 5.6 writes by default; out.Error returns the first error
		"timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success",
		"failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL", "Latency", "IdleTime", "Connect",
	})
	for _, h := range histories {
		byEnd := slices.Clone(h.Ops)
		slices.SortStableFunc(byEnd, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		for i := range byEnd {
			_ = out.Write(jtlRow(h, &byEnd[i]))
		}
	}
	out.Flush()
	return out.Error()
}

func jtlRow(h history.History, op *history.Op) []string {
	label := h.Strategy
	if op.Outcome == history.Refused && op.Reason == history.SoldOut {
		label += ": sold out"
	}
	code, message, failure := jtlWords(op)
	return []string{
		strconv.FormatInt(h.Start.Add(op.Call-op.Late()).UnixMilli(), 10),
		wholeMillis(op.Elapsed()),
		label, code, message,
		fmt.Sprintf("%s 1-%d", h.Strategy, op.Client),
		"text",
		strconv.FormatBool(!op.Failed()),
		failure,
		strconv.Itoa(op.BytesIn), strconv.Itoa(op.BytesOut),
		strconv.Itoa(op.Active), strconv.Itoa(op.Active),
		h.URL,
		latency(op), "0", wholeMillis(op.Connect),
	}
}

// latency returns the time to the first byte. Like the elapsed time, it counts from the due time.
func latency(op *history.Op) string {
	if op.FirstByte == 0 {
		return "0"
	}
	return wholeMillis(op.Late() + op.FirstByte)
}

func jtlWords(op *history.Op) (code, message, failure string) {
	detail := measure.Shorten(op.Detail) // some readers of JTL accept one line only
	if op.Status == 0 {
		code = "Non HTTP response code: " + op.Reason
		message = "Non HTTP response message: " + detail
	} else {
		code, message = strconv.Itoa(op.Status), op.Reason
	}
	switch {
	case op.Outcome == history.OK:
		message = http.StatusText(op.Status)
	case !op.Failed():
		message = "sold out"
	case op.Outcome == history.Refused:
		failure = "rejected, " + op.Reason + ": " + detail
	default:
		failure = "outcome unknown: " + detail
	}
	return code, message, failure
}

func wholeMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
