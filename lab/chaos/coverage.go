package chaos

import (
	"slices"

	"oversell/api"
)

// Phase is where a request was when a fault struck it.
type Phase int

// The phases. A request that has ended, or not begun, is in none.
const (
	NoPhase  Phase = iota
	Wait           // it has asked for the lock
	Critical       // it holds the lock, and has not begun to write
	Write          // between its last look at the lock and the end of its write
	Release        // it has written, and not yet released
	phases
)

// Phases returns the phases, without NoPhase, in their order.
func Phases() []Phase { return []Phase{Wait, Critical, Write, Release} }

// PhaseAfter returns the phase of a request whose last step was this one.
func PhaseAfter(step api.Step) Phase {
	switch step {
	case "", api.Released:
		return NoPhase
	case api.Granted, api.Read:
		return Critical
	case api.Writing:
		return Write
	case api.Written:
		return Release
	default:
		return Wait
	}
}

// Count counts the injections of a fault, and how often the fault landed (had its effect). In counts, by phase, the
// requests that the landed faults struck: those of one client, or those of all. Renewal counts the landed faults that
// lasted longer than the pause between two renewals, while a renewed lock was held.
type Count struct {
	Injected, Landed, Renewal int
	In                        [phases]int
}

// Coverage counts the faults of many plans.
type Coverage map[Verb]Count

// Add adds the counts of another coverage.
func (c Coverage) Add(other Coverage) {
	for verb, more := range other {
		sum := c[verb]
		sum.Injected, sum.Landed, sum.Renewal = sum.Injected+more.Injected, sum.Landed+more.Landed, sum.Renewal+more.Renewal
		for p, n := range more.In {
			sum.In[p] += n
		}
		c[verb] = sum
	}
}

// Missing returns the faults of a list that have never landed: about these, the plans show nothing.
func (c Coverage) Missing(faults []Verb) []Verb {
	return slices.DeleteFunc(slices.Clone(faults), func(v Verb) bool { return c[v].Landed > 0 })
}
