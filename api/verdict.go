package api

// Verdict is the result of a check of one invariant, or of an experiment with one strategy.
type Verdict string

// Holds is the good verdict of a check, and Safe that of an experiment. An inconclusive history fits
// both a good and a bad verdict.
const (
	Holds        Verdict = "holds"    // the invariant held
	Safe         Verdict = "safe"     // every invariant held
	Broken       Verdict = "broken"   // an invariant does not hold
	Stalled      Verdict = "stalled"  // no request acquired the lock within the time limit
	Aborted      Verdict = "aborted"  // the lease expired before the work finished; no update was lost
	Wasteful     Verdict = "wasteful" // correct, at a cost that grows with the number of waiters
	NotShown     Verdict = "not shown"
	Inconclusive Verdict = "inconclusive" // unknown outcomes, lost events, or the check or experiment itself failed
)

// In returns the word for a verdict in a language, en or zh.
func (v Verdict) In(lang string) string {
	chinese := map[Verdict]string{
		Holds: "正确", Safe: "安全", Broken: "被破坏", Stalled: "停滞", Aborted: "中断", Wasteful: "浪费", NotShown: "未显现", Inconclusive: "无法判定",
	}
	return Text{string(v), chinese[v]}.In(lang)
}

// Sign returns a sign for the verdict, for readers who see no colours.
func (v Verdict) Sign() string {
	return map[string]string{"safe": "✓", "harm": "✗", "cost": "▲", "doubt": "?"}[v.Class()]
}

// Class returns the style of the verdict: safe, harm, cost or doubt.
func (v Verdict) Class() string {
	switch v {
	case Holds, Safe:
		return "safe"
	case Broken, Stalled:
		return "harm"
	case Aborted, Wasteful:
		return "cost"
	default:
		return "doubt"
	}
}

// Failed reports whether an invariant does not hold, or a hazard did harm.
func (v Verdict) Failed() bool { return v == Broken || v == Stalled || v == Aborted || v == Wasteful }
