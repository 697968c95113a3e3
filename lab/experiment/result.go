package experiment

import (
	"strconv"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
)

// These constants are the values of Result.Invariant.
const (
	Conservation      = "conservation"       // I1: sold = initial - remaining
	MutualExclusion   = "mutual exclusion"   // I2: no two holders at a time
	FenceMonotonicity = "fence monotonicity" // I3: fencing tokens of writes never fall
	Progress          = "progress"           // I4: another request acquires the lock within a bound
	Reconciliation    = "reconciliation"     // I5: the stock outside MySQL agrees with the row
	Linearizability   = "linearizability"
)

// Result is one run of one hazard on one strategy.
type Result struct {
	Hazard   api.Hazard  `json:"hazard"`
	Strategy string      `json:"strategy"`
	Fenced   bool        `json:"fenced,omitempty"`
	Seed     int64       `json:"seed"`
	Claim    api.Claim   `json:"claim,omitempty"`
	Verdict  api.Verdict `json:"verdict"`
	// Invariant is the invariant that does not hold. Why explains the verdict.
	Invariant string   `json:"invariant,omitempty"`
	Why       api.Text `json:"why"`
	// Sold counts the pieces that clients bought. Taken counts the pieces that left the stock of the
	// strategy, or MySQL's row in the hazard write-behind.
	Sold  int `json:"sold"`
	Taken int `json:"taken"`
	// NextGrantMS is the time from the fault until another request acquired the lock.
	NextGrantMS float64 `json:"next_grant_ms,omitempty"`
	// MySQL is the database's version. Some hazards need MariaDB even if the others use MySQL.
	MySQL string `json:"mysql,omitempty"`
	// Adapter is the command of the lock, if the strategy is an adapter.
	Adapter string `json:"adapter,omitempty"`
	// Plan has the moves of a plan that was drawn, or made up by a user, for the hazards Chaos and Made. See Planned.
	Plan      string            `json:"plan,omitempty"`
	Recording history.Recording `json:"Recording,omitzero"`
}

// judgeUnless takes the verdict back if no fault has landed: such a run shows nothing about the hazard.
func (r *Result) judgeUnless(missed error) {
	if missed != nil {
		r.Verdict, r.Invariant, r.Why = api.Inconclusive, "", notLanded(missed)
	}
}

// failure returns the text of an error, which is the same in both languages.
func failure(err error) api.Text {
	return api.Textf("The experiment failed: %v.", "实验出错：%v。", err)
}

// Counts compares the pieces sold with the pieces taken from the stock. It begins most Whys.
func (r Result) Counts() api.Text {
	return api.Textf("%d sold, %d taken from stock.", "卖出 %d 件，库存减少 %d。", r.Sold, r.Taken)
}

// Name returns the strategy's id, with " --fenced" for a fenced run.
func (r Result) Name() string {
	if r.Fenced {
		return r.Strategy + " --fenced"
	}
	return r.Strategy
}

// Agreement compares the result with the claim on the strategy's card: a protection allows no failed run, and a claimed
// flaw must show in 95 % of the runs.
func (r Result) Agreement() string {
	switch {
	case r.Verdict.Failed():
		return r.Claim.Agreement(1, 1, 0)
	case r.Verdict == api.Inconclusive:
		return r.Claim.Agreement(1, 0, 1)
	}
	return r.Claim.Agreement(1, 0, 0)
}

func (r Result) contradicts() bool { return r.Agreement() == api.Contradicts }

// withLostEvents makes a verdict inconclusive if lost events could have changed it. These are runs
// without harm, and runs with two holders: a lock whose release is lost seems held.
func (r Result) withLostEvents(lost int) Result {
	if lost == 0 {
		return r
	}
	if r.Verdict == api.Safe || r.Verdict == api.NotShown || r.Invariant == MutualExclusion {
		r.Verdict, r.Invariant = api.Inconclusive, ""
	}
	r.Why = api.Joined(api.Textf(
		"%d or more events are missing in the recording. Run it again.",
		"记录中至少缺少 %d 个事件，请重新运行。", lost), r.Why)
	return r
}

// Planned returns the result with the plan of its hazard, as if a user had made it up. A strategy may stop at a step of its
// own. Plan stays empty if the hazard has none.
func (r Result) Planned(c api.Card) Result {
	e, _ := Of(r.Hazard)
	if r.Plan != "" || len(e.Plans) == 0 {
		return r
	}
	plan, _ := chaos.Parse(e.planFor(c, r.Seed)) // a test reads all plans
	for i, m := range plan {
		if m.Client == 0 && m.Do == chaos.Sells && m.At != "" {
			plan[i].At = c.StepFor(e.Hazard, c.StepFor(e.ClaimedAs, m.At))
		}
	}
	r.Hazard, r.Plan = Made, plan.String()
	return r
}

// Command returns the command that repeats the run, with another seed.
func (r Result) Command() string { return r.command("") }

// Repeat returns the command that repeats the run with its seed.
func (r Result) Repeat() string { return r.command(" --seed " + strconv.FormatInt(r.Seed, 10)) }

func (r Result) command(seed string) string {
	switch {
	case r.Plan != "" && r.Adapter != "":
		return "oversell judge --chaos --plan '" + r.Plan + "' -- " + r.Adapter
	case r.Hazard == Made:
		return "oversell break --plan '" + r.Plan + "' " + r.Name()
	case r.Plan != "":
		return "oversell chaos " + r.Name() + " --plan '" + r.Plan + "'"
	case r.Hazard == Chaos:
		return "oversell chaos " + r.Name() + seed
	case r.Adapter != "":
		return "oversell judge --hazard " + string(r.Hazard) + seed + " -- " + r.Adapter
	default:
		return "oversell break " + string(r.Hazard) + " " + r.Name() + seed
	}
}
