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
	Moves    chaos.Plan // that were possible
	Skipped  chaos.Plan // the others
	Coverage chaos.Coverage
	// Named is the hazard that the plan is; it may be empty. The finding is no news unless the claim is Protects: see
	// Result.Claim.
	Named api.Hazard
}

// LockOf returns what package chaos must know to draw plans for a strategy.
func (bed *Testbed) LockOf(s Subject) chaos.Lock {
	steps := s.Card.steps()
	if s.primitive != nil {
		steps = []api.Step{api.Granted}
	}
	return chaos.Lock{
		Name: s.Name(), Steps: steps, Faults: bed.faultsFor(s.Card), Servers: len(bed.lockServers(s.Card)), Locker: s.Card.Locker, Nests: s.Card.Reentrant,
		Expires: s.Card.Lease && !s.Card.Renews, Fenced: s.Fenced, Begins: s.begins(), Leases: s.Card.uses("redis"),
	}
}

// steps returns the steps at which a request stops, in their order.
func (c Card) steps() []api.Step {
	steps := []api.Step{api.Asked}
	for _, b := range c.Breaks { // at a step of its own, before the grant or in the critical section
		if b.At != "" && chaos.PhaseAfter(b.At) == chaos.Wait {
			steps = append(steps, b.At)
		}
	}
	if at := c.CriticalStep; at != "" && chaos.PhaseAfter(at) == chaos.Wait {
		steps = append(steps, at)
	}
	return append(slices.Compact(steps), api.Granted, api.Read, api.Writing, api.Written)
}

// faultsFor returns the faults that can strike a strategy. A lock in one process has no servers.
func (bed *Testbed) faultsFor(c Card) []chaos.Verb {
	if c.Scope == api.ScopeProcess || c.Scope == api.ScopeNone {
		return []chaos.Verb{chaos.Freezes, chaos.Starves, chaos.Dies}
	}
	return slices.DeleteFunc(chaos.Faults(), func(v chaos.Verb) bool {
		named := v != chaos.Holds && v != chaos.Loses || c.Locker                                      // the commands of other strategies do not name their key
		row := v != chaos.HoldsRow || c.Locker && c.Family != handFamily && c.lockService() != "mysql" // there, Holds strikes the row as well
		return !named || !row || v == chaos.FailsOver && !c.uses("redis") || v == chaos.Deletes && !inServer(c) || v == chaos.Jumps && c.lockService() != "redis"
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

// explanation lists hazards that explain a finding, the more special ones first.
type explanation struct {
	losing   []api.Hazard // hazards by which an update is lost
	stalling []api.Hazard // those by which the lock is not granted any more
	// doubling lists those by which a second request is granted the lock while the lease of the first lasts. A hazard that ends
	// a lease, such as a pause, is none: the model of the lock knows leases.
	doubling []api.Hazard
}

func explanationOf(v chaos.Verb) explanation {
	lost := []api.Hazard{"failover", "bare-majority", "restart", "write-behind", "operator-at-write"}
	foreign, paused := []api.Hazard{"foreign-unlock"}, []api.Hazard{"pause-at-read", "pause", "starved"}
	return map[chaos.Verb]explanation{
		chaos.Freezes:      {losing: paused, doubling: foreign},
		chaos.Starves:      {losing: paused, doubling: foreign},
		chaos.Dies:         {losing: []api.Hazard{"write-behind"}, stalling: []api.Hazard{"crash", "crash-between"}},
		chaos.Cut:          {[]api.Hazard{"cutoff", "session-expiry", "partition", "dead-waiter", "waiter-session"}, []api.Hazard{"missed-release", "waiter-session"}, []api.Hazard{"dead-waiter", "partition"}},
		chaos.Slow:         {stalling: []api.Hazard{"late-answer"}},
		chaos.Holds:        {[]api.Hazard{"late-release", "late-acquire", "cutoff"}, []api.Hazard{"crash-between", "lost-reply", "crash", "late-acquire", "missed-release"}, []api.Hazard{"late-release", "late-acquire", "foreign-unlock"}},
		chaos.HoldsRow:     {losing: paused, doubling: foreign},
		chaos.Loses:        {losing: []api.Hazard{"renewal-reply"}, stalling: []api.Hazard{"lost-reply", "release-reply"}},
		chaos.Disconnect:   {losing: []api.Hazard{"session-expiry", "waiter-session"}, stalling: []api.Hazard{"waiter-reset", "lost-reply", "missed-release"}},
		chaos.Deletes:      {losing: []api.Hazard{"operator-at-write", "operator"}},
		chaos.Crashes:      {losing: lost, stalling: []api.Hazard{"minority-loss", "restart", "database-down", "failover"}},
		chaos.Restarts:     {losing: lost, stalling: []api.Hazard{"restart", "database-down", "failover"}},
		chaos.Stalls:       {losing: paused, stalling: []api.Hazard{"late-answer", "missed-release"}},
		chaos.Jumps:        {losing: []api.Hazard{"clock-jump"}, stalling: []api.Hazard{"clock-jump"}}, // when it is right again, leases last too long
		chaos.FailsOver:    {losing: lost, stalling: []api.Hazard{"failover"}},
		chaos.LosesPower:   {losing: []api.Hazard{"write-behind"}, stalling: []api.Hazard{"host-death", "crash", "crash-between"}},
		chaos.RunsAhead:    {losing: []api.Hazard{"client-clocks"}, doubling: []api.Hazard{"client-clocks"}},
		chaos.Refused:      {losing: []api.Hazard{"bare-majority"}, stalling: []api.Hazard{"minority-loss"}},
		chaos.LosesRenewal: {losing: []api.Hazard{"renewal-reply"}, stalling: []api.Hazard{"renewal-reply"}},
		chaos.LosesSession: {losing: append([]api.Hazard{"session-expiry", "waiter-session"}, paused...), stalling: []api.Hazard{"waiter-session"}},
		chaos.StaysBehind:  {losing: []api.Hazard{"split-brain", "split-renewal"}},
		chaos.MinorityDies: {losing: lost, stalling: []api.Hazard{"minority-loss"}},
		chaos.MajorityDies: {losing: lost, stalling: []api.Hazard{"majority-loss", "restart"}},
		chaos.ClocksJump:   {losing: []api.Hazard{"clock-jump"}, stalling: []api.Hazard{"clock-jump"}},
		chaos.Passes:       {losing: []api.Hazard{"overrun", "foreign-unlock"}, doubling: foreign},
	}[v]
}

// late lists hazards that strike a holder after it has verified its lock, or a strategy that never verifies it. A lock that
// somebody deletes is not among them: a holder learns of that at its next renewal only.
func late() []api.Hazard { return []api.Hazard{"pause", "pause-at-read", "starved"} }

// writesLate reports whether a request may have been delayed after it had verified its lock: it stopped at its write, its
// statement was held back, or its process was frozen while it ran.
func writesLate(p chaos.Plan) bool {
	shared := slices.ContainsFunc(p, func(m chaos.Move) bool { return chaos.Replica(m.Client) != m.Client })
	var at [chaos.Clients]api.Step
	for _, m := range p {
		switch m.Do {
		case chaos.Sells, chaos.Resumes:
			at[m.Client] = m.At
		case chaos.Freezes, chaos.Starves:
			if s := at[m.Client]; s != api.Granted && s != api.Read || shared {
				return true
			}
		}
		if m.At == api.Writing || m.Do == chaos.HoldsRow {
			return true
		}
	}
	return false
}

// promises reports whether a lock promises that nothing like a finding happens, although its card names no hazard: a lease
// frees the lock when all faults have ended, a re-entrant lock grants itself to its owner again, and a holder that notices
// the end of its lease does not write after it.
func promises(c Card, p chaos.Plan, found Result, held bool) bool {
	onServer := slices.ContainsFunc(p, func(m chaos.Move) bool { return m.Do.OnServer() })
	if found.Invariant == Progress {
		return c.Lease && !onServer && held || c.Reentrant && slices.ContainsFunc(p, nested)
	}
	return c.Lease && !c.Unchecked && !onServer && !writesLate(p) && !p.Has(chaos.Slow, chaos.Holds, chaos.Loses)
}

func nested(m chaos.Move) bool { return m.Nested }

// knownHazard returns the hazard that a plan is, and the card's claim: Breaks, or Silent if the card says nothing about it.
// The claim is Protects if the card says that the strategy survives all that the plan has. held says that the lock, and no
// backend, kept requests waiting.
func knownHazard(s Subject, p chaos.Plan, found Result, held bool) (hazard api.Hazard, claim Claim) {
	stalls, doubles := found.Invariant == Progress, found.Invariant == MutualExclusion
	var candidates []api.Hazard
	for _, v := range slices.Concat(chaos.Faults(), chaos.Written(), []chaos.Verb{chaos.Passes}) {
		switch {
		case !p.Has(v):
		case stalls:
			candidates = append(candidates, explanationOf(v).stalling...)
		case doubles:
			candidates = append(candidates, explanationOf(v).doubling...)
		default:
			candidates = append(candidates, explanationOf(v).losing...)
		}
	}
	if stalls && slices.ContainsFunc(p, nested) {
		candidates = append(candidates, "nesting")
	}
	if !stalls && !s.Card.Safe {
		candidates = append(candidates, "race", "replica-race", "early-release", "dead-waiter")
	}
	if !stalls && !doubles && p.Has(chaos.Passes) && writesLate(p) { // a lease that ends by any fault
		candidates = append(candidates, late()...)
	}
	if s.Card.Locker && !s.Card.Unchecked && !writesLate(p) {
		candidates = slices.DeleteFunc(candidates, func(hazard api.Hazard) bool { return slices.Contains(late(), hazard) })
	}
	// A fence protects from every lost update, and lets no waiter go on.
	fenced := s.Fenced && !stalls
	promised := doubles || fenced || promises(s.Card, p, found, held)
	for _, claim := range []Claim{Breaks, Silent, Protects} {
		for _, hazard := range candidates {
			e, ok := Of(hazard)
			switch {
			case !ok || !e.AppliesTo(s.Card) || e.Claim(s.Card, fenced) != claim:
			case promised && claim == Silent: // whatever the card says
				return hazard, Protects
			default:
				return hazard, claim
			}
		}
	}
	return "", Protects
}
