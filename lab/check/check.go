// Package check decides from the history of a run whether its invariants held. It needs no server,
// and gives the same verdict each time for the same history.
package check

import "time"

// Verdict says whether an invariant held in a run.
type Verdict string

// Inconclusive means that the history fits both other verdicts, or that the check was not completed.
const (
	Holds        Verdict = "holds"
	Broken       Verdict = "broken"
	Inconclusive Verdict = "inconclusive"
)

// none is the index of an event or an operation that does not exist.
const none = -1

func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
