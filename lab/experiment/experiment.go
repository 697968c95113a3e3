package experiment

import (
	"cmp"
	"context"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/rig"
)

// Experiment injects one hazard into the runs of all its strategies at the same time. It is the whole
// of a hazard: terminal, page and documents read its words here.
type Experiment struct {
	Hazard api.Hazard
	Group  Group // where its column is in the matrix
	// Title describes the experiment. Shows describes the effect to expect.
	Title, Shows api.Text
	// Basic marks the hazards with which a class begins. Each of them breaks a basic strategy, or shows
	// that only some locks survive it.
	Basic bool
	// Applies reports whether the hazard can affect a strategy at all.
	Applies func(api.Card) bool
	// Fenced adds runs with fencing tokens to each plan that does not name its strategies.
	Fenced bool
	// ClaimedAs is the hazard whose claim applies if the card says nothing about Hazard. Empty means none.
	ClaimedAs api.Hazard
	// Default is the claim of every card that says nothing about the hazard.
	Default api.Claim
	// Lab configures a lab for this experiment alone. If nil, the testbed's lab is used.
	Lab func(rig.Config) rig.Config
	// Plans are carried out as the plan language says; of several, the seed chooses one. A is the holder, and B, or D, the
	// contender. Reads lets a replica read the product before: it confirms its lock at its first sale after a reset, so a
	// holder that stops before it has read the row would learn of every lost lock.
	Plans []string
	// OnRow replaces Plans for a lock in MySQL: a sale needs the links to MySQL for the row, too.
	OnRow string
	// lease is the lease of the locks in Lab. 0 means player.Lease.
	lease time.Duration

	// Unseen means that a timeline does not show the cause of the verdict: it shows no commands, and only few requests.
	Unseen bool
	// silences means that the fault may keep the lock's program from answering.
	silences bool
	// rule is a rule of the judge for this hazard alone; it may be nil.
	rule rule
	// promised means that the judge checks what the lock promises, in place of the harm to the row: see rules. At the end of
	// the plan, one more client buys.
	promised bool
	// stale says why an update was lost although no request acquired the lock too early.
	stale api.Text
	// lapse says what happened if another request acquired the lock before the holder wrote.
	lapse api.Text
	// perform, if set, is a load or a measurement, in place of a plan.
	perform func(ctx context.Context, r *round) ([]Result, error)
}

// Group is the title of a part of the matrix. Each part is narrow enough for a page.
type Group string

const (
	faultless      Group = "Two requests, and no fault"
	costly         Group = "What it costs when many wait"
	holderFails    Group = "The holder's process fails"
	linkFails      Group = "A connection or a waiter fails"
	reported       Group = "What bug reports describe"
	serversFail    Group = "The servers of the lock fail"
	topologies     Group = "Redis behind Sentinels, or in a cluster"
	split          Group = "Sentinel promotes a replica, and the old master goes on"
	splitLater     Group = "The same, with a lock that was replicated before"
	stockElsewhere Group = "The stock is in several places"
)

// Groups returns the parts of the matrix in their order.
func Groups() []Group {
	return []Group{
		faultless, costly, holderFails, linkFails, reported, serversFail, topologies, split, splitLater, stockElsewhere,
	}
}

// All returns the experiments in the order of the matrix of results.
func All() []Experiment {
	return []Experiment{
		race(), replicaRace(), earlyRelease(), casStorm(), deadlock(),
		crash(), hostDeath(), crashBetween(), overrun(), foreignUnlock(), lateAcquire(), lateRelease(), pause(), pauseAtRead(),
		failover(), failoverSentinel(), failoverCluster(),
		splitBrain(), minReplicas(), splitRenewal(), splitRenewalMin(), quorumLoss(), resharding(),
		minorityLoss(), majorityLoss(), clockJump(), clientClocks(),
		lostReply(), releaseReply(), lateAnswer(), sessionExpiry(), cutoff(), holderReset(), partition(), bareMajority(), deadWaiter(), waiterReset(), missedRelease(),
		operator(), operatorAtWrite(), starved(), renewalReply(), waiterSession(),
		nesting(), polling(), herd(), restart(), databaseDown(),
		galera(), twoMasters(), staleRead(), writeBehind(),
	}
}

// Hazards returns the names of all hazards.
func Hazards() (names []api.Hazard) {
	for _, e := range All() {
		names = append(names, e.Hazard)
	}
	return names
}

// WithRandomPlans returns the experiments that a plan can name: All, and the random plans.
func WithRandomPlans() []Experiment { return append(All(), RandomPlans()) }

// Of returns the experiment of a hazard. ok is false if there is none.
func Of(hazard api.Hazard) (e Experiment, ok bool) {
	all := WithRandomPlans()
	i := slices.IndexFunc(all, func(e Experiment) bool { return e.Hazard == hazard })
	if i < 0 {
		return Experiment{Hazard: hazard}, false
	}
	return all[i], true
}

// HazardsOf returns the hazards that apply to a lock, without those that concern only the database
// behind it.
func HazardsOf(c api.Card) (names []api.Hazard) {
	for _, e := range All() {
		if e.Lab == nil && e.AppliesTo(c) {
			names = append(names, e.Hazard)
		}
	}
	return names
}

// AppliesTo reports whether Applies(c) is true or the card makes a claim about the hazard. A lab of the
// experiment's own may lack the servers of a strategy with a claim, so there Applies alone decides. It also decides
// for a lock on trial: a fault that cannot reach its servers would confirm any claim.
func (e Experiment) AppliesTo(c api.Card) bool {
	return e.Applies(c) || e.Lab == nil && !c.OnTrial() && cmp.Or(c.Claim(e.Hazard), c.Claim(e.ClaimedAs)) != api.Silent
}

// Claim returns the card's claim. With fencing tokens, it is api.Protects if e.Fenced, else api.Silent.
func (e Experiment) Claim(c api.Card, fenced bool) api.Claim {
	switch {
	case !fenced:
		claim := cmp.Or(c.Claim(e.Hazard), c.Claim(e.ClaimedAs))
		if e.Lab != nil && c.OnTrial() { // no lock of another program is made for these labs
			return claim
		}
		return cmp.Or(claim, e.Default)
	case e.Fenced:
		return api.Protects
	default:
		return api.Silent
	}
}

// The following functions are what most experiments need for their fields.

func always(api.Card) bool    { return true }
func lockers(c api.Card) bool { return c.Locker }

func claimed(hazard api.Hazard) func(api.Card) bool {
	return func(c api.Card) bool { return !c.OnTrial() && c.Claim(hazard) != api.Silent }
}

// claimedOrOnTrial applies to a lock of another program on these servers, whatever it claims, and to our strategies
// that claim something about the hazard.
func claimedOrOnTrial(hazard api.Hazard, backends ...string) func(api.Card) bool {
	return func(c api.Card) bool {
		if c.OnTrial() {
			return slices.Contains(backends, c.LockService()) || slices.Contains(backends, "redlock") && slices.Contains(c.Backends, "redlock")
		}
		return claimed(hazard)(c)
	}
}

func locksOn(backends ...string) func(api.Card) bool {
	return func(c api.Card) bool { return c.Locker && slices.ContainsFunc(backends, c.Uses) }
}

// by returns the value that the seed chooses. As many seeds in a row as there are values choose each value once.
func by[T any](seed int64, from ...T) T {
	return from[uint64(seed)%uint64(len(from))] //nolint:gosec // any number will do
}
