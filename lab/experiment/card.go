package experiment

import (
	"slices"

	"oversell/api"
)

// Card is a strategy's card, with what an experiment asks of it.
type Card struct{ api.Card }

// Claim is what a card claims about a hazard.
type Claim string

// The claims. Without a claim, a result is shown and not compared.
const (
	Protects Claim = "protects"
	Breaks   Claim = "breaks"
	Silent   Claim = ""
)

// Claim returns the claim about the hazard.
func (c Card) Claim(hazard string) Claim {
	switch {
	case slices.Contains(c.Protects, api.Hazard(hazard)):
		return Protects
	case c.breaksAt(hazard) != nil:
		return Breaks
	}
	return Silent
}

// breaksAt returns the step at which the hazard breaks the strategy. It is empty if the card
// names no step, and nil if the card does not claim that it breaks.
func (c Card) breaksAt(hazard string) *api.Step {
	for i := range c.Breaks {
		if c.Breaks[i].Hazard == api.Hazard(hazard) {
			return &c.Breaks[i].At
		}
	}
	return nil
}

// stepFor returns the step at which the hazard is injected: that of the card, or otherwise.
func (c Card) stepFor(hazard, otherwise string) string {
	if at := c.breaksAt(hazard); at != nil && *at != "" {
		return string(*at)
	}
	if c.CriticalStep != "" && (api.Step(otherwise) == api.Granted || api.Step(otherwise) == api.Read) {
		return string(c.CriticalStep)
	}
	return otherwise
}

// uses reports whether the strategy needs a backend. Redlock's masters are Redis, too.
func (c Card) uses(backend string) bool {
	return slices.Contains(c.Backends, backend) || backend == "redis" && slices.Contains(c.Backends, "redlock")
}

// lockService returns the backend that stores the lock. MySQL stores the stock of all.
func (c Card) lockService() string {
	for _, b := range []string{"redis", "zookeeper", "etcd"} {
		if c.uses(b) {
			return b
		}
	}
	return "mysql"
}
