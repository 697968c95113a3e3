package experiment

import (
	"slices"

	"oversell/api"
	"oversell/lab/history"
)

// Card is a strategy's card (its description with its claims), with methods that experiments need.
type Card struct{ api.Card }

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
func (c Card) Claim(hazard api.Hazard) Claim {
	switch {
	case slices.Contains(c.Protects, hazard):
		return Protects
	case c.breaks(hazard) >= 0:
		return Breaks
	}
	return Silent
}

func (c Card) breaks(hazard api.Hazard) int {
	return slices.IndexFunc(c.Breaks, func(b api.Break) bool { return b.Hazard == hazard })
}

func (c Card) stepFor(hazard api.Hazard, otherwise api.Step) api.Step {
	if i := c.breaks(hazard); i >= 0 && c.Breaks[i].At != "" {
		return c.Breaks[i].At
	}
	if hazard == api.Deadlock && c.SeveralLocks { // it has one of two locks
		return api.Part
	}
	if c.CriticalStep != "" && (otherwise == api.Granted || otherwise == api.Read) {
		return c.CriticalStep
	}
	return otherwise
}

// uses reports whether the strategy needs a backend. The masters of Redlock are Redis servers, too.
func (c Card) uses(backend string) bool {
	return slices.Contains(c.Backends, backend) || backend == "redis" && slices.Contains(c.Backends, "redlock")
}

// Leased returns the recording with the lease of the strategy's lock in a testbed. A lock on
// ZooKeeper lasts as long as its session. Recordings of earlier versions lack the lease.
func (c Card) Leased(rec history.Recording) history.Recording {
	switch {
	case !c.Locker:
	case c.uses("zookeeper"):
		rec.Lease, rec.Renews = ZKSession, true
	case c.Lease:
		rec.Lease, rec.Renews = Lease, c.Renews
	}
	return rec
}

// onTrial reports whether the lock is another program's. Nobody has tried its claims before.
func (c Card) onTrial() bool { return c.Family == "adapter" }

// anyServer lists the kinds of servers that lockService may return.
var anyServer = []string{"redis", "zookeeper", "etcd", "postgres", "mysql"} //nolint:gochecknoglobals // constant

// lockService returns the lock's backend. MySQL comes last: other locks need it for the stock.
func (c Card) lockService() string {
	all := anyServer[:len(anyServer)-1]
	if i := slices.IndexFunc(all, c.uses); i >= 0 {
		return all[i]
	}
	return "mysql"
}
