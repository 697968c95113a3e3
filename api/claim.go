package api

import "slices"

// Claim is what a card claims about a hazard.
type Claim string

// Silent means that the card makes no claim. The result is shown, but not compared with a claim.
const (
	Protects Claim = "protects"
	Breaks   Claim = "breaks"
	Silent   Claim = ""
)

// Agrees and Contradicts are the values of an agreement that is not open.
const (
	Agrees      = "agrees"
	Contradicts = "contradicts"
)

// Agreement compares runs with the claim. Protection allows no failed run. A claimed flaw depends on timing, so it may fail
// to show in one run of twenty. Agreement returns "" without a claim, and if the inconclusive runs may decide.
func (c Claim) Agreement(runs, failed, inconclusive int) string {
	confirmed := func(failed int) bool { return c == Protects && failed == 0 || c == Breaks && failed*20 >= runs*19 }
	switch least, most := confirmed(failed), confirmed(failed+inconclusive); {
	case c == Silent || least != most:
		return ""
	case least:
		return Agrees
	}
	return Contradicts
}

// Claim returns the claim about the hazard.
func (c Card) Claim(hazard Hazard) Claim {
	switch {
	case slices.Contains(c.Protects, hazard):
		return Protects
	case c.BrokenBy(hazard):
		return Breaks
	}
	return Silent
}

// BrokenBy reports whether the card says that the hazard breaks the strategy.
func (c Card) BrokenBy(h Hazard) bool { return c.breaks(h) >= 0 }

func (c Card) breaks(h Hazard) int {
	return slices.IndexFunc(c.Breaks, func(b Break) bool { return b.Hazard == h })
}

// StepFor returns the step at which an experiment stops the holder: the step of the hazard, the critical one if the
// experiment's step is the grant or the reading, or else the experiment's.
func (c Card) StepFor(hazard Hazard, otherwise Step) Step {
	switch i := c.breaks(hazard); {
	case i >= 0 && c.Breaks[i].At != "":
		return c.Breaks[i].At
	case hazard == Deadlock && c.SeveralLocks: // it has one of two locks
		return Part
	case c.CriticalStep != "" && (otherwise == Granted || otherwise == Read):
		return c.CriticalStep
	}
	return otherwise
}

// Uses reports whether the strategy needs a backend. The masters of Redlock are Redis servers, too.
func (c Card) Uses(backend string) bool {
	return slices.Contains(c.Backends, backend) || backend == "redis" && slices.Contains(c.Backends, "redlock")
}

// OnTrial reports whether the lock is another program's. Nobody has tried its claims before.
func (c Card) OnTrial() bool { return c.Family == "adapter" }

// LockService returns the kind of servers that have the lock. MySQL comes last: other locks need it for the stock.
func (c Card) LockService() string {
	services := LockServices()
	return services[slices.IndexFunc(services, func(s string) bool { return s == "mysql" || c.Uses(s) })]
}

// LockServices lists the kinds of servers that LockService may return.
func LockServices() []string { return []string{"redis", "zookeeper", "etcd", "postgres", "mysql"} }

// InServer reports whether the lock is kept in a server, where an operator finds it.
func (c Card) InServer() bool { return c.Locker && c.Scope != ScopeProcess }
