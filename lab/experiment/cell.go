package experiment

import (
	"cmp"
	"context"
	"time"

	"oversell/lab/history"
	"oversell/lab/rig"
)

// Verdict is what an experiment showed of one strategy.
type Verdict string

// The verdicts.
const (
	Safe     Verdict = "safe"     // every invariant held
	Stalled  Verdict = "stalled"  // nobody got the lock within the bound (I4)
	Violated Verdict = "violated" // an invariant broke
	Aborted  Verdict = "aborted"  // the lock ended under the work: nothing lost but the work
	Wasteful Verdict = "wasteful" // correct, at a cost that grows with the crowd
	NotShown Verdict = "not shown"
	Unknown  Verdict = "unknown" // too many unknown outcomes, or the experiment itself failed
)

// Broke says whether the hazard did harm.
func (v Verdict) Broke() bool { return v == Violated || v == Stalled || v == Aborted || v == Wasteful }

// Subject is a strategy in an experiment, with or without its fence.
type Subject struct {
	Card    Card
	Fenced  bool
	product int64
}

// Name is the strategy's, with its fence.
func (s Subject) Name() string {
	if s.Fenced {
		return s.Card.ID + " --fenced"
	}
	return s.Card.ID
}

// Cell is one square of the matrix: what one hazard did to one strategy.
type Cell struct {
	Number   int     `json:"experiment"`
	Hazard   string  `json:"hazard"`
	Strategy string  `json:"strategy"`
	Fenced   bool    `json:"fenced,omitempty"`
	Seed     int64   `json:"seed"`
	Claim    Claim   `json:"claim,omitempty"`
	Verdict  Verdict `json:"verdict"`
	// Invariant is the one that broke, I1 to I5, and Why says how.
	Invariant string `json:"invariant,omitempty"`
	Why       string `json:"why"`
	// Sold and Taken are pieces: what customers have, and what has left the row.
	Sold  int `json:"sold"`
	Taken int `json:"taken"`
	// NextGrantMS is how long the rival waited for the lock after the fault.
	NextGrantMS float64 `json:"next_grant_ms,omitempty"`
	// MySQL is the version of the MySQL or MariaDB that the run was on. Some hazards need
	// MariaDB, also where all others run on MySQL.
	MySQL string `json:"mysql,omitempty"`
	// Figures are the response times, where they are what the hazard is about.
	Figures   []Figure          `json:"figures,omitempty"`
	Recording history.Recording `json:"-"`
}

// Agrees is false where the cell contradicts the card.
func (c Cell) Agrees() bool {
	switch c.Claim {
	case Protects:
		return c.Verdict == Safe
	case Breaks:
		return c.Verdict.Broke()
	default:
		return true
	}
}

// Command reproduces the cell.
func (c Cell) Command() string {
	command := "oversell break " + c.Hazard + " " + c.Strategy
	if c.Fenced {
		command += " --fenced"
	}
	return command
}

// Experiment brings about one hazard for all its subjects at once.
type Experiment struct {
	Number int
	Hazard string
	// Title and Shows are for the class: what is done, and what it sees.
	Title, Shows string
	// Applies says which strategies can meet the hazard at all.
	Applies func(Card) bool
	// Fenced: those that have a fence go through it twice, once with it.
	Fenced bool
	// ClaimedAs is the hazard under whose name cards speak of this one; empty: its own.
	ClaimedAs string
	// Fence is what a fence claims about the hazard.
	Fence Claim
	// Lab makes a lab of the experiment's own from the class's; nil: the class's will do.
	Lab func(rig.Config) rig.Config
	run func(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error)
}

// Strikes says whether a strategy goes through the experiment. A claim is tried also where
// nothing could happen: then that is what it shows.
func (e Experiment) Strikes(c Card) bool { return e.Applies(c) || e.Claim(c, false) != Silent }

// Claim is what is claimed of a strategy: by its card, or with a fence by that, for what a
// fence is for no card need say.
func (e Experiment) Claim(c Card, fenced bool) Claim {
	if fenced {
		return e.Fence
	}
	return c.Claim(cmp.Or(e.ClaimedAs, e.Hazard))
}

// bound is how soon after a fault somebody must have the lock: a lease or a session,
// the time to notice, and what a busy machine takes.
const bound = 3*Lease + 2*time.Second
