package experiment

import (
	"slices"
	"testing"
)

// TestWords checks that each hazard has its words in both languages, and a place in the matrix.
func TestWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range All() {
		if e.Title.EN == "" || e.Title.ZH == "" || e.Shows.EN == "" || e.Shows.ZH == "" {
			t.Errorf("%s lacks a title, or what it shows, in English or Chinese", e.Hazard)
		}
		if !slices.Contains(Groups(), e.Group) {
			t.Errorf("%s is in no group of the matrix: %q", e.Hazard, e.Group)
		}
		if seen[e.Hazard] {
			t.Errorf("%s is listed twice", e.Hazard)
		}
		seen[e.Hazard] = true
	}
}
