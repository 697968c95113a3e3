package matrix_test

import (
	"bytes"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/terminal"
)

// TestEventLog checks that a run is written step by step, or as the figures that it measured.
func TestEventLog(t *testing.T) {
	steps := ran("pause", "redis", 1, experiment.Breaks, experiment.Broken)
	steps.Invariant = experiment.Conservation
	measured := experiment.Result{Hazard: "percentiles", Strategy: "for-update", Verdict: experiment.Safe, Figures: []experiment.Figure{
		{Loop: api.Text{EN: "closed loop"}, P99: 12.5}, {Loop: api.Text{EN: "open loop, from when it was due"}, P99: 150},
	}}
	for _, test := range []struct {
		result experiment.Result
		want   []string
	}{
		{steps, []string{"0.001 s  replica-1  A granted", "replica-1    answers: sold", "redis, pause:\n"}},
		{measured, []string{"closed loop", "open loop, from when it was due", "150.0", "for-update, percentiles:\n"}},
	} {
		var out bytes.Buffer
		if err := matrix.WriteEventLog(&out, test.result, terminal.Screen{}, "en"); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in:\n%s", test.result.Hazard, want, out.String())
			}
		}
	}
}
