// Package check decides from the history of a run whether its invariants held. It needs no server,
// and gives the same verdict each time for the same history.
package check

import "time"

// Verdict is the verdict of a check.
type Verdict string

// Undecided means that requests with an unknown outcome allow both other verdicts.
const (
	Holds     Verdict = "holds"
	Broken    Verdict = "broken"
	Undecided Verdict = "undecided"
)

// none is the index of an event or an operation that does not exist.
const none = -1

func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
