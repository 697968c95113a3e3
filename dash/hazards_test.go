package dash

import "testing"

// TestHazardsInChinese checks that each experiment has a Chinese title and description.
func TestHazardsInChinese(t *testing.T) {
	known := map[string]bool{}
	for _, h := range hazards() {
		known[h.ID] = true
		if h.Title.ZH == "" || h.Shows.ZH == "" {
			t.Errorf("%s has no Chinese", h.ID)
		}
	}
	for id := range inChinese() {
		if !known[id] {
			t.Errorf("%s has a Chinese text, but no experiment", id)
		}
	}
}
