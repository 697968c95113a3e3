package cli

import (
	"os"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/history"
)

// TestChaosKeeps writes the timeline of a finding that did not repeat. Its file has no character that Windows forbids.
func TestChaosKeeps(t *testing.T) {
	t.Chdir(t.TempDir())
	var out strings.Builder
	flags := chaosFlags{command: "oversell chaos redis"}
	rec := history.Recording{Stock: 5, Ops: []history.Op{{Client: 1, Qty: 1, Outcome: history.OK}}}
	found := experiment.Result{Strategy: "semaphore:redis", Seed: 7, Hazard: experiment.Chaos, Plan: "A sells", Verdict: api.Broken, Recording: rec}
	if err := flags.keep(t.Context(), found, &out); err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(strings.TrimSpace(out.String()), "timeline: ")
	if page, err := os.ReadFile(path); err != nil || path != "results/chaos/semaphore-redis-7.html" || !strings.Contains(string(page), "<li>A begins a sale.</li>") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
