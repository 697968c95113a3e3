package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/view/report"
	"oversell/view/terminal"
)

// stalled returns an open loop of 100 requests, one every 10 ms, each answered after 2 ms. The
// service stalls from 500 to 700 ms, when only one request is in progress. The next requests wait
// for the connection. After the stall, each is answered within 2 ms.
func stalled() history.History {
	const ms = time.Millisecond
	h := history.History{
		Strategy: "redis", URL: "http://127.0.0.1:8080/check/lock?strategy=redis", Rate: 100,
		Start: time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC), Clients: 1, Loops: 100,
	}
	free := time.Duration(0)
	for i := range 100 {
		due := time.Duration(i+1) * 10 * ms
		call := max(due, free)
		op := history.Op{
			Client: 1, Strategy: "redis", Qty: 1, Due: due, Call: call, Return: call + 2*ms, FirstByte: ms,
			Outcome: history.OK, Reason: history.Sold, Status: 200, Replica: "replica-1", BytesIn: 320, BytesOut: 160, Active: 1,
		}
		if due == 500*ms {
			op.Return += 200 * ms
		}
		free = op.Return
		h.Ops = append(h.Ops, op)
	}
	return h
}

// crowded returns an open loop with too few connections. The delay of each request is a millisecond
// longer than that of the previous request.
func crowded() history.History {
	h := stalled()
	h.Strategy, h.Clients, h.Loops = "zk", 2, 50
	for i := range h.Ops {
		op := &h.Ops[i]
		op.Strategy, op.Client, op.Call = "zk", i%2+1, op.Due+time.Duration(i)*time.Millisecond
		op.Return = op.Call + 20*time.Millisecond
	}
	return h
}

func openResults() []measure.Result {
	left := 0
	setup := measure.Setup{
		Safe: true, Stock: 100, Remaining: &left, Plan: load.Plan{Wait: 10 * time.Second, Seed: 42, Qty: 1, Target: "http://127.0.0.1:8080"},
		Conditions: measure.Conditions{Machine: measure.Machine{OS: "linux", Arch: "amd64", Cores: 2}},
	}
	return append([]measure.Result{measure.Summarise(stalled(), setup), measure.Summarise(crowded(), setup)}, results()[1])
}

func TestGoldenOpenLoop(t *testing.T) {
	all := openResults()
	var out bytes.Buffer
	report.JMeterTable(&out, all, terminal.Screen{})
	report.JMeterTable(&out, all, terminal.Screen{Width: 80})
	report.Table(&out, all, terminal.Screen{})
	for _, r := range all {
		report.Lesson{}.Write(&out, r)
	}
	report.Conditions(&out, all, terminal.Screen{})
	golden(t, "open.txt", out.Bytes())
	out.Reset()
	if err := report.JTL(&out, []history.History{stalled()}); err != nil {
		t.Fatal(err)
	}
	golden(t, "open.csv", out.Bytes())
	out.Reset()
	if err := report.HTML(&out, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`class="sent"`, "99% sent", "Rate due", "as its customer does"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestOpenLoopKeepsBoth checks that an open loop has two response times of a request. One counts
// from when the request was due, the other from when the request was sent.
func TestOpenLoopKeepsBoth(t *testing.T) {
	all := openResults()
	// The request due at 500 ms was answered 202 ms later. Each following request was due 10 ms and
	// answered 2 ms later, so it took 8 ms less.
	if r := all[0]; r.MaxMS != 202 || r.P99MS != 194 || r.P50MS != 2 || r.Open.FromSent.P99 != 2 || r.Open.FromSent.Max != 202 || r.Open.Late.Max != 192 {
		t.Errorf("p99 %v from due, %+v", r.P99MS, r.Open)
	}
	if r := all[0]; !r.Open.Reached || r.Open.SentPerS != 100 || r.Partial {
		t.Errorf("%+v", r.Open)
	}
	if r := all[1]; r.Open.Reached || r.Open.SentPerS != 90.909 || r.Open.FromSent.Max != 20 || r.MaxMS != 119 {
		t.Errorf("%v, %+v", r.MaxMS, r.Open)
	}
	if all[2].Open != nil {
		t.Error("a closed loop with an open one's figures")
	}
	text, err := json.Marshal(all[0])
	if err != nil || !strings.Contains(string(text), `"open":{"due_per_s":100,"sent_per_s":100,"reached":true,"from_sent_ms":{"mean":`) {
		t.Errorf("%s, %v", text, err)
	}
	if text, err = json.Marshal(all[2]); err != nil || strings.Contains(string(text), `"open"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestPartial checks that a run with a planned length is complete when the run was not stopped,
// even if some planned requests were not sent.
func TestPartial(t *testing.T) {
	for _, tt := range []struct {
		change func(*history.History)
		want   bool
	}{
		{func(*history.History) {}, false},
		{func(h *history.History) { h.Ops = h.Ops[:50] }, true},
		{func(h *history.History) { h.Ops, h.Length = h.Ops[:50], time.Second }, false},
		{func(h *history.History) { h.Ops, h.Length, h.Stopped = h.Ops[:50], time.Second, true }, true},
		{func(h *history.History) { h.Ops[7].Reason = history.Interrupted }, true},
	} {
		h := stalled()
		tt.change(&h)
		if got := measure.Summarise(h, measure.Setup{Stock: 100}).Partial; got != tt.want {
			t.Errorf("%d requests, length %v, stopped %v: partial %v", len(h.Ops), h.Length, h.Stopped, got)
		}
	}
}
