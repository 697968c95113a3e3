package experiment

import (
	"slices"

	"oversell/api"
	"oversell/lab/chaos"
)

// Chaos is the hazard of a random plan, in results and recordings.
const Chaos = "chaos"

// Drawn is what a random plan has shown of one strategy.
type Drawn struct {
	Result
	Moves    chaos.Plan // the moves that were carried out
	Skipped  chaos.Plan // the moves that were impossible
	Coverage chaos.Coverage
	// Named is the hazard that explains why the plan failed; it may be empty. A finding is news only if the claim is
	// Protects: see Result.Claim.
	Named api.Hazard
}

type hazards []api.Hazard

// explanation lists hazards that explain a finding, the more special ones first.
type explanation struct {
	losing   hazards // hazards by which an update is lost
	stalling hazards // hazards by which the lock is not granted any more
	// doubling lists hazards by which a second request is granted the lock while the lease of the first lasts. A hazard that
	// ends a lease, such as a pause, does not belong here: the model of the lock knows leases.
	doubling hazards
}

func explanationOf(v chaos.Verb) explanation {
	lost := hazards{"failover", "bare-majority", "restart", "write-behind", "operator-at-write"}
	foreign, paused := hazards{"foreign-unlock"}, hazards{"pause-at-read", "pause", "starved"}
	return map[chaos.Verb]explanation{
		chaos.Freezes:      {losing: paused, doubling: foreign},
		chaos.Starves:      {losing: paused, doubling: foreign},
		chaos.Dies:         {losing: hazards{"write-behind"}, stalling: hazards{"crash", "crash-between"}},
		chaos.Cut:          {hazards{"cutoff", "session-expiry", "partition", "dead-waiter", "waiter-session"}, hazards{"missed-release", "waiter-session"}, hazards{"dead-waiter", "partition"}},
		chaos.Slow:         {stalling: hazards{"late-answer"}},
		chaos.Holds:        {hazards{"late-release", "late-acquire", "cutoff"}, hazards{"crash-between", "lost-reply", "crash", "late-acquire", "missed-release"}, hazards{"late-release", "late-acquire", "foreign-unlock"}},
		chaos.HoldsRow:     {losing: paused, doubling: foreign},
		chaos.Loses:        {losing: hazards{"renewal-reply"}, stalling: hazards{"lost-reply", "release-reply"}},
		chaos.Disconnect:   {losing: hazards{"session-expiry", "waiter-session"}, stalling: hazards{"waiter-reset", "lost-reply", "missed-release"}},
		chaos.Deletes:      {losing: hazards{"operator-at-write", "operator"}},
		chaos.Crashes:      {losing: lost, stalling: hazards{"minority-loss", "restart", "database-down", "failover"}},
		chaos.Restarts:     {losing: lost, stalling: hazards{"restart", "database-down", "failover"}},
		chaos.Stalls:       {losing: paused, stalling: hazards{"late-answer", "missed-release"}},
		chaos.Jumps:        {losing: hazards{"clock-jump"}, stalling: hazards{"clock-jump"}}, // when it is right again, leases last too long
		chaos.FailsOver:    {losing: lost, stalling: hazards{"failover"}},
		chaos.LosesPower:   {losing: hazards{"write-behind"}, stalling: hazards{"host-death", "crash", "crash-between"}},
		chaos.RunsAhead:    {losing: hazards{"client-clocks"}, doubling: hazards{"client-clocks"}},
		chaos.Refused:      {losing: hazards{"bare-majority"}, stalling: hazards{"minority-loss"}},
		chaos.LosesRenewal: {losing: hazards{"renewal-reply"}, stalling: hazards{"renewal-reply"}},
		chaos.LosesSession: {losing: append(hazards{"session-expiry", "waiter-session"}, paused...), stalling: hazards{"waiter-session"}},
		chaos.StaysBehind:  {losing: hazards{"split-brain", "split-renewal"}},
		chaos.MinorityDies: {losing: lost, stalling: hazards{"minority-loss"}},
		chaos.MajorityDies: {losing: lost, stalling: hazards{"majority-loss", "restart"}},
		chaos.ClocksJump:   {losing: hazards{"clock-jump"}, stalling: hazards{"clock-jump"}},
		chaos.Passes:       {losing: hazards{"overrun", "foreign-unlock"}, doubling: foreign},
	}[v]
}

// late lists hazards that strike a holder after it has verified its lock, or a strategy that never verifies it. A lock that
// somebody deletes is not among them: a holder learns of that at its next renewal only.
func late() hazards { return hazards{"pause", "pause-at-read", "starved"} }

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
func (p *played) promises(invariant string) bool {
	c, moves := p.Card, p.Moves
	onServer := slices.ContainsFunc(moves, func(m chaos.Move) bool { return m.Do.OnServer() })
	if invariant == Progress {
		return c.Lease && !onServer && p.held() || c.Reentrant && slices.ContainsFunc(moves, nested)
	}
	return c.Lease && !c.Unchecked && !onServer && !writesLate(moves) && !moves.Has(chaos.Slow, chaos.Holds, chaos.Loses)
}

func nested(m chaos.Move) bool { return m.Nested }

// knownHazard returns the hazard that explains why a plan failed, and the claim about it: api.Breaks, or api.Silent if
// the card says nothing. The claim is api.Protects if the card claims it, if the card says nothing and the lock promises
// it all the same, or if no hazard explains the failure.
func (p *played) knownHazard(invariant string) (hazard api.Hazard, claim api.Claim) {
	stalls, doubles := invariant == Progress, invariant == MutualExclusion
	var candidates hazards
	for _, v := range slices.Concat(chaos.Faults(), chaos.Written(), []chaos.Verb{chaos.Passes}) {
		switch {
		case !p.Moves.Has(v):
		case stalls:
			candidates = append(candidates, explanationOf(v).stalling...)
		case doubles:
			candidates = append(candidates, explanationOf(v).doubling...)
		default:
			candidates = append(candidates, explanationOf(v).losing...)
		}
	}
	if stalls && slices.ContainsFunc(p.Moves, nested) {
		candidates = append(candidates, "nesting")
	}
	if !stalls && !p.Card.Safe {
		candidates = append(candidates, "race", "replica-race", "early-release", "dead-waiter")
	}
	if !stalls && !doubles && p.Moves.Has(chaos.Passes) && writesLate(p.Moves) { // a lease that ends by any fault
		candidates = append(candidates, late()...)
	}
	if p.Card.Locker && !p.Card.Unchecked && !writesLate(p.Moves) {
		candidates = slices.DeleteFunc(candidates, func(hazard api.Hazard) bool { return slices.Contains(late(), hazard) })
	}
	// A fence protects from every lost update, and lets no waiter go on.
	fenced := p.Fenced && !stalls
	promised := doubles || fenced || p.promises(invariant)
	for _, claim := range []api.Claim{api.Breaks, api.Silent, api.Protects} {
		for _, hazard := range candidates {
			e, ok := Of(hazard)
			switch {
			case !ok || !e.AppliesTo(p.Card) || e.Claim(p.Card, fenced) != claim:
			case promised && claim == api.Silent: // whatever the card says
				return hazard, api.Protects
			default:
				return hazard, claim
			}
		}
	}
	return "", api.Protects
}
