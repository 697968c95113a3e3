package experiment

import (
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/rig"
)

// Chaos is the hazard of a random plan, in results and recordings.
const Chaos = "chaos"

// Drawn is what a random plan has shown of one strategy.
type Drawn struct {
	Result
	Moves    chaos.Plan
	Coverage chaos.Coverage
	// Named is the hazard that the plan is, if the card says that this one breaks the strategy. Then the finding is no
	// news, and the claim of the Result is Breaks. Otherwise it is Protects: a card names all that breaks its strategy.
	Named string
}

// LockOf returns what package chaos must know to draw plans for a strategy.
func (bed *Testbed) LockOf(s Subject) chaos.Lock {
	steps := []api.Step{api.Asked}
	for _, b := range s.Card.Breaks { // at a step of its own, before the grant or in the critical section
		if b.At != "" && chaos.PhaseAfter(b.At) == chaos.Wait {
			steps = append(steps, b.At)
		}
	}
	if at := s.Card.CriticalStep; at != "" && chaos.PhaseAfter(at) == chaos.Wait {
		steps = append(steps, at)
	}
	steps = append(slices.Compact(steps), api.Granted, api.Read, api.Writing, api.Written)
	return chaos.Lock{
		Name: s.Name(), Steps: steps, Faults: bed.faultsFor(s.Card), Servers: len(bed.lockServers(s.Card)), Locker: s.Card.Locker,
		Expires: s.Card.Lease && !s.Card.Renews,
	}
}

// faultsFor returns the faults that can strike a strategy. A lock in one process has no servers.
func (bed *Testbed) faultsFor(c Card) []chaos.Verb {
	if c.Scope == api.ScopeProcess || c.Scope == api.ScopeNone {
		return []chaos.Verb{chaos.Freezes, chaos.Dies}
	}
	return slices.DeleteFunc(chaos.Faults(), func(v chaos.Verb) bool {
		return v == chaos.Deletes && !inServer(c) || v == chaos.Jumps && c.lockService() != "redis"
	})
}

// lockServers returns the servers of a strategy's lock, or of its stock if it is no lock.
func (bed *Testbed) lockServers(c Card) (servers []*rig.Server) {
	for _, s := range bed.Rig.Servers() {
		several := c.uses("redlock") || service(s.Name()) != "redis" && c.lockService() != "mysql"
		if service(s.Name()) == c.lockService() && !strings.HasSuffix(s.Name(), "replica") && (several || len(servers) == 0) {
			servers = append(servers, s)
		}
	}
	return servers
}

// hazardsOf returns the hazards that the faults of a verb belong to, the more special ones first.
func hazardsOf(v chaos.Verb) []string {
	return map[chaos.Verb][]string{
		chaos.Freezes:    {"pause-at-read", "pause", "starved"},
		chaos.Dies:       {"crash", "crash-between", "write-behind"},
		chaos.Cut:        {"cutoff", "session-expiry", "partition", "dead-waiter", "waiter-session", "missed-release"},
		chaos.Slow:       {"late-answer"},
		chaos.Holds:      {"late-release", "late-acquire", "crash-between", "cutoff"},
		chaos.Loses:      {"lost-reply", "release-reply", "renewal-reply"},
		chaos.Disconnect: {"waiter-reset", "session-expiry", "cutoff"},
		chaos.Deletes:    {"operator-at-write", "operator"},
		chaos.Crashes:    {"failover", "bare-majority", "minority-loss", "restart", "database-down", "write-behind", "operator-at-write"},
		chaos.Restarts:   {"restart", "failover", "bare-majority", "database-down", "write-behind", "operator-at-write"},
		chaos.Jumps:      {"clock-jump"},
		chaos.Passes:     {"overrun", "foreign-unlock"},
	}[v]
}

// claimedHazard returns the hazard that a plan is, if the card says that it breaks the strategy.
func claimedHazard(s Subject, p chaos.Plan) string {
	var candidates []string
	for _, v := range append(chaos.Faults(), chaos.Passes) {
		if p.Has(v) {
			candidates = append(candidates, hazardsOf(v)...)
		}
	}
	if slices.ContainsFunc(p, func(m chaos.Move) bool { return m.Nested }) {
		candidates = append(candidates, "nesting")
	}
	if !s.Card.Safe {
		candidates = append(candidates, "race", "replica-race", "early-release", "dead-waiter")
	}
	for _, hazard := range candidates {
		if e, ok := Of(hazard); ok && e.Claim(s.Card, s.Fenced) == Breaks {
			return hazard
		}
	}
	return ""
}
