package dash

import "testing"

// A new experiment must be told to both halves of the class.
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
			t.Errorf("there is no experiment %s any more", id)
		}
	}
}
