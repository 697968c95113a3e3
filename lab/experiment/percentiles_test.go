package experiment

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/report"
)

// TestPercentilesVerdict: what the two figures say, by table.
func TestPercentilesVerdict(t *testing.T) {
	for _, tt := range []struct {
		name         string
		closed, open float64 // p99, ms
		stock        check.Verdict
		want         Verdict
	}{
		{"the closed loop hid it", 12, 150, check.Holds, Safe},
		{"three times is enough", 50, 150, check.Holds, Safe},
		{"both show it", 140, 150, check.Holds, NotShown},
		{"an update was lost, whatever the figures say", 12, 150, check.Violated, Violated},
		{"an answer never came", 12, 150, check.Undecided, Unknown},
	} {
		var c Cell
		closed := measured{result: report.Result{P99MS: tt.closed}, frozen: history.Span{To: 201 * time.Millisecond}}
		open := measured{result: report.Result{P99MS: tt.open, Open: &report.Open{}}, frozen: history.Span{To: 204 * time.Millisecond}}
		c.compare(closed, open, check.I1{Verdict: tt.stock})
		if c.Verdict != tt.want || (c.Invariant == "I1") != (tt.want == Violated) || !strings.Contains(c.Why, "204 ms: p99 150.0 ms") {
			t.Errorf("%s: %s %s, want %s: %s", tt.name, c.Verdict, c.Invariant, tt.want, c.Why)
		}
	}
}

// TestCalm: a measurement counts where only the freeze was slow.
func TestCalm(t *testing.T) {
	const ms = time.Millisecond
	m := measured{began: time.Hour, frozen: history.Span{From: time.Hour + 100*ms, To: time.Hour + 300*ms}}
	for i := range 200 {
		call := time.Duration(i) * 10 * ms
		m.history.Ops = append(m.history.Ops, history.Op{Call: call, Return: call + ms})
	}
	m.history.Ops[9].Return = 301 * ms
	if !m.calm() || len(m.met()) != 22 {
		t.Errorf("calm %v, %d met the freeze; want 22", m.calm(), len(m.met()))
	}
	for i := range 3 {
		m.history.Ops[100+i].Return += time.Second
	}
	if m.calm() {
		t.Error("three of 178 took a second, and nothing was frozen")
	}
}

// TestPercentiles: the lesson, on the real shop.
func TestPercentiles(t *testing.T) {
	c := open(t)
	kept := &Evidence{}
	if err := Run(t.Context(), c, Plan{Hazards: []string{"percentiles"}, Strategies: []string{"for-update"}}, kept, silent{}); err != nil {
		t.Fatal(err)
	}
	cell := kept.Cells()[0]
	var told bytes.Buffer
	cell.Story(&told)
	// A machine that does nothing else shows it; one that is busy must say that it can't.
	busy := cell.Verdict == NotShown && strings.Contains(cell.Why, "was busy")
	if cell.Verdict != Safe && !busy {
		t.Errorf("%s: %s", cell.Verdict, cell.Why)
	}
	if len(cell.Figures) != 3 || cell.Figures[0].FrozenMS < 200 || cell.Sold != cell.Taken || cell.Sold < 2*requests {
		t.Errorf("%+v", cell)
	}
	for _, want := range []string{"closed loop", "open loop, from when it was due", "for-update, percentiles: "} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("the story lacks %q: %s", want, told.String())
		}
	}
}
