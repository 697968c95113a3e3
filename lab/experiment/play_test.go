package experiment

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/player"
)

// TestMadeUp carries out plans as users write them, on two strategies at the same time.
func TestMadeUp(t *testing.T) {
	bed := open(t)
	for _, tt := range []struct {
		plan    string
		verdict map[string]api.Verdict
		why     string // part of the explanation for none
	}{
		{"A sells at read, B sells, A resumes", map[string]api.Verdict{"none": api.Broken, "for-update": api.Safe}, "the hazard race, which breaks none"},
		{"A resumes, B thaws, A sells, C stops", map[string]api.Verdict{"none": api.Safe, "for-update": api.Safe}, "Skipped, because impossible then: A resumes, B thaws, C stops."},
		{"A freezes, A sells, A ends", map[string]api.Verdict{"none": api.Safe, "for-update": api.Safe}, "impossible then: A sells, A ends."},
		{"server 9 crashes, A sells", map[string]api.Verdict{"none": api.Inconclusive, "for-update": api.Inconclusive}, "no fault of the plan can strike this lock"},
		{"A sells at part", map[string]api.Verdict{"none": api.Safe, "for-update": api.Safe}, `A never stopped at "part"`},
		{"for each n, A sells at asked, A holds n, A resumes, B sells, B ends, A delivers", map[string]api.Verdict{"redis": api.Safe, "zk": api.Safe}, ""},
	} {
		plan, err := chaos.Parse(tt.plan)
		if err != nil {
			t.Fatal(err)
		}
		var subjects []player.Subject
		for id := range tt.verdict {
			subjects = append(subjects, subject(t, bed, id, false))
		}
		results, err := MadeUp(plan).inItsLab(t.Context(), bed, subjects, 1)
		if err != nil || len(results) != len(subjects) {
			t.Fatalf("%s: %d results, %v", tt.plan, len(results), err)
		}
		for _, r := range results {
			if r.Verdict != tt.verdict[r.Strategy] || r.Hazard != Made || r.Plan == "" || r.Strategy == "none" && !strings.Contains(r.Why.EN, tt.why) {
				t.Errorf("%s, %s: %s, %s", tt.plan, r.Strategy, r.Verdict, r.Why.EN)
			}
		}
	}
}

// TestPlansOfHazards checks that each hazard that is no load has plans, in the words of the language, in which A begins.
func TestPlansOfHazards(t *testing.T) {
	for _, e := range All() {
		if (len(e.Plans) == 0) == (e.perform == nil) {
			t.Errorf("%s has %d plans", e.Hazard, len(e.Plans))
		}
		for _, text := range slices.Concat(e.Plans, slices.DeleteFunc([]string{e.OnRow}, func(text string) bool { return text == "" })) {
			p, err := chaos.Parse(text)
			if err != nil || p.String() != text {
				t.Errorf("%s: %s, %v", text, p, err)
			}
			if !slices.ContainsFunc(p, func(m chaos.Move) bool { return m.Do == chaos.Sells && m.Client == 0 }) {
				t.Errorf("%s: %s has no holder", e.Hazard, text)
			}
		}
	}
}
