package experiment

import (
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/measure"
)

func TestPercentilesVerdict(t *testing.T) {
	for _, tt := range []struct {
		name         string
		closed, open float64 // p99, ms
		stock        api.Verdict
		want         api.Verdict
	}{
		{"the closed loop hid the freeze", 12, 150, api.Holds, api.Safe},
		{"three times is enough", 50, 150, api.Holds, api.Safe},
		{"both loops show the freeze", 140, 150, api.Holds, api.NotShown},
		{"an update was lost, and the figures do not matter", 12, 150, api.Broken, api.Broken},
		{"one request had no answer", 12, 150, api.Inconclusive, api.Inconclusive},
	} {
		var c Result
		closed := measured{result: measure.Result{P99MS: tt.closed}, frozen: history.Span{To: 201 * time.Millisecond}}
		open := measured{result: measure.Result{P99MS: tt.open, Open: &measure.Open{}}, frozen: history.Span{To: 204 * time.Millisecond}}
		c.compare(closed, open, check.Conservation{Verdict: tt.stock})
		if c.Verdict != tt.want || (c.Invariant == Conservation) != (tt.want == api.Broken) || !strings.Contains(c.Why.EN, "204 ms, and the p99 was 150.0 ms") {
			t.Errorf("%s: %s %s, want %s: %s", tt.name, c.Verdict, c.Invariant, tt.want, c.Why)
		}
	}
}

// TestUndisturbed checks that a measurement counts as undisturbed only if the requests outside the
// freeze were quick.
func TestUndisturbed(t *testing.T) {
	const ms = time.Millisecond
	m := measured{frozen: history.Span{From: time.Hour + 100*ms, To: time.Hour + 300*ms}}
	for i := range 200 {
		call := time.Hour + time.Duration(i)*10*ms
		m.ops = append(m.ops, history.Op{Call: call, Return: call + ms})
	}
	m.ops[9].Return = time.Hour + 301*ms
	if !m.undisturbed() || len(m.duringFreeze()) != 22 {
		t.Errorf("undisturbed %v, %d requests during the freeze; want 22", m.undisturbed(), len(m.duringFreeze()))
	}
	for i := range 3 {
		m.ops[100+i].Return += time.Second
	}
	if m.undisturbed() {
		t.Error("three of 178 took a second, and nothing was frozen")
	}
}

// TestPercentiles runs the experiment percentiles on the real service.
func TestPercentiles(t *testing.T) {
	bed := open(t)
	store := &ResultStore{}
	if err := Perform(t.Context(), bed, Selection{Hazards: []api.Hazard{"percentiles"}, Strategies: []string{"for-update"}}, store, silent{}); err != nil {
		t.Fatal(err)
	}
	result := store.Results()[0]
	// On a busy machine the verdict may be "not shown". Why must then say that the machine was busy.
	busy := result.Verdict == api.NotShown && strings.Contains(result.Why.EN, "was busy")
	if result.Verdict != api.Safe && !busy {
		t.Errorf("%s: %s", result.Verdict, result.Why)
	}
	// A request without an answer may have taken a piece: the verdict includes it.
	if len(result.Figures) != 3 || result.Figures[0].FrozenMS < 200 || result.Taken < result.Sold || result.Sold < 2*requests {
		t.Errorf("%+v", result)
	}
}
