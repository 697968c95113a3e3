package grade

import (
	_ "embed" // for hints.json
	"encoding/json"
	"slices"

	"oversell/api"
)

// Hint leads from a requirement that failed to the strategy whose lesson it is.
type Hint struct {
	Text     api.Text `json:"text"`
	Strategy string   `json:"strategy"` // of `oversell strategies`
	Lesson   string   `json:"lesson"`   // a file in docs/course
}

// hints lists the hints in the order of the exercises, each with the names of its requirements.
//
//go:embed hints.json
var hints []byte

// hintFor returns the hint for a requirement, by its name.
func hintFor(name string) *Hint {
	var all []struct {
		Of []string `json:"of"`
		Hint
	}
	_ = json.Unmarshal(hints, &all) // no error: a test reads each hint
	for _, h := range all {
		if slices.Contains(h.Of, name) {
			return &h.Hint
		}
	}
	return nil
}
