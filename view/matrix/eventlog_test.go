package matrix_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/history"
	"oversell/view/matrix"
	"oversell/view/terminal"
)

// TestEventLog checks that a run is written step by step.
func TestEventLog(t *testing.T) {
	steps := ran("pause", "redis", 1, api.Breaks, api.Broken)
	steps.Invariant = experiment.Conservation
	second := steps.Recording.Events[0]
	second.At, second.Owner = 8*time.Millisecond, "p"
	steps.Recording.Events = append(steps.Recording.Events, second)
	steps.Recording.Spans = []history.Span{{What: "stop", Who: "replica-1", From: 4 * time.Millisecond, To: 8 * time.Millisecond}}
	steps.Recording.Ops = append(steps.Recording.Ops, history.Op{Return: 12 * time.Millisecond, Replica: "replica-2", Outcome: history.Unknown, Reason: history.Broken})
	many := ran("herd", "redis", 1, api.Breaks, api.Wasteful)
	for i := range 30 {
		second.Owner = fmt.Sprint(i)
		many.Recording.Events = append(many.Recording.Events, second)
	}
	for _, test := range []struct {
		result experiment.Result
		want   []string
	}{
		{steps, []string{"redis, pause:\n       s  A: replica-2, B: replica-1, C: replica-1\n", " 0.003  B: gets the lock\n", "B: process frozen\n", "B: resumes\n", "B: ✓ sold\n", "A: ? connection broken\n"}},
		{many, []string{"25 more requests are not shown."}},
	} {
		var out bytes.Buffer
		matrix.WriteEventLog(&out, test.result, terminal.Screen{}, "en")
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in:\n%s", test.result.Hazard, want, out.String())
			}
		}
	}
}
