package dash

import (
	"oversell/api"
	"oversell/lab/experiment"
)

type hazard struct {
	ID           string
	Title, Shows api.Text
}

func hazards() (all []hazard) {
	for _, e := range experiment.All() {
		all = append(all, hazard{e.Hazard, e.Title, e.Shows})
	}
	return all
}

// hazardOf returns the hazard with this id. If there is none, ok is false and h has only the id.
func hazardOf(id string) (h hazard, ok bool) {
	e, ok := experiment.Of(id)
	return hazard{id, e.Title, e.Shows}, ok
}
