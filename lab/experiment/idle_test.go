package experiment

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/rig/rigtest"
)

// TestNothingInjected carries out the hazards that cause a fault, without the fault. No run may have a verdict: a lock
// that nothing has reached would be called safe.
func TestNothingInjected(t *testing.T) {
	bed := open(t)
	bed.idle = true
	// These hazards are what the requests do themselves.
	faultless := []string{
		"race", "replica-race", "early-release", "cas-storm", "deadlock", "overrun", "nesting", "polling", "herd", "percentiles", "write-behind",
	}
	often := []string{"crash", "cutoff", "lost-reply"}
	for _, e := range All() {
		if e.Lab != nil || slices.Contains(faultless, e.Hazard) || !rigtest.IsNightly() && !slices.Contains(often, e.Hazard) {
			continue
		}
		t.Run(e.Hazard, func(t *testing.T) {
			var subjects []Subject
			for name := range verdicts[e.Hazard] {
				id, fenced := strings.CutSuffix(name, " --fenced")
				i := slices.IndexFunc(bed.cards, func(c Card) bool { return c.ID == id })
				subjects = append(subjects, Subject{Card: bed.cards[i], Fenced: fenced})
			}
			if len(subjects) == 0 {
				t.Skip("applies only to a lock on trial")
			}
			results, err := e.carryOut(t.Context(), bed, subjects, 1)
			bed.rec.forget()
			if err != nil || len(results) != len(subjects) {
				t.Fatalf("%d results, want %d: %v", len(results), len(subjects), err)
			}
			for _, r := range results {
				if r.Verdict != api.Inconclusive {
					t.Errorf("%s: %q, though nothing was injected: %s", r.Name(), r.Verdict, r.Why.EN)
				}
			}
		})
	}
}
