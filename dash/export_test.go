package dash

import (
	"testing"

	"oversell/api"
	"oversell/lab/stepper"
)

// Strategies returns the ids of all strategies of the service.
func (s *Server) Strategies(t *testing.T) (ids []string) {
	t.Helper()
	cards, err := s.catalogue.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		ids = append(ids, c.ID)
	}
	return ids
}

// Marks reports whether a line of the strategy's code reports the step, so that the page can mark
// the line.
func (s *Server) Marks(t *testing.T, strategy string, step api.Step) bool {
	t.Helper()
	c, err := s.catalogue.one(t.Context(), strategy)
	if err != nil {
		t.Fatal(err)
	}
	_, reported := stepper.Places(c.Code)[step]
	return reported
}

// Listeners returns the number of pages that are connected to a topic.
func (s *Server) Listeners(topic string) int { return s.hub.Listeners(topic) }
