package experiment

import "slices"

// Card is what a strategy claims, as the service tells it.
type Card struct {
	ID              string   `json:"id"`
	Scope           string   `json:"scope"`
	Safe            bool     `json:"safe"`
	Backends        []string `json:"backends"`
	Stock           string   `json:"stock"` // where it is counted, if not in the row
	Locker          bool     `json:"locker"`
	Lease           bool     `json:"lease"`
	LeasePerRequest bool     `json:"lease_per_request"`
	Renews          bool     `json:"renews"`
	Fenced          bool     `json:"fenced"`
	Fair            bool     `json:"fair"`
	CriticalStep    string   `json:"critical_step"`
	Protects        []string `json:"protects"`
	Breaks          []struct {
		Hazard string `json:"hazard"`
		At     string `json:"at"`
	} `json:"breaks"`
}

// Claim is what a card says about a hazard.
type Claim string

// The claims. About many a hazard a card is silent: then the cell is only shown.
const (
	Protects Claim = "protects"
	Breaks   Claim = "breaks"
	Silent   Claim = ""
)

// Claim is what the card says about the hazard.
func (c Card) Claim(hazard string) Claim {
	switch {
	case slices.Contains(c.Protects, hazard):
		return Protects
	case c.breaksAt(hazard) != nil:
		return Breaks
	}
	return Silent
}

// breaksAt is the step at which the hazard breaks the strategy, or where the card
// names none, an empty one; nil when it claims no such thing.
func (c Card) breaksAt(hazard string) *string {
	for i := range c.Breaks {
		if c.Breaks[i].Hazard == hazard {
			return &c.Breaks[i].At
		}
	}
	return nil
}

// stepFor is where the hazard strikes this strategy: where its card says, or otherwise.
func (c Card) stepFor(hazard, otherwise string) string {
	if at := c.breaksAt(hazard); at != nil && *at != "" {
		return *at
	}
	if c.CriticalStep != "" && (otherwise == "granted" || otherwise == "read") {
		return c.CriticalStep
	}
	return otherwise
}

// uses says whether the strategy needs a backend. Redlock's masters are Redis too.
func (c Card) uses(backend string) bool {
	return slices.Contains(c.Backends, backend) || backend == "redis" && slices.Contains(c.Backends, "redlock")
}

// lockService is the backend that keeps the lock; MySQL keeps the stock of them all.
func (c Card) lockService() string {
	for _, b := range []string{"redis", "zookeeper", "etcd"} {
		if c.uses(b) {
			return b
		}
	}
	return "mysql"
}
