// Package check judges a run from its history. The same history always gets the same
// verdict, and no server is needed.
package check

import "time"

// Verdict is the verdict of a check.
type Verdict string

// The verdicts. Undecided means that the requests with an unknown outcome allow both others.
const (
	Holds     Verdict = "holds"
	Broken    Verdict = "broken"
	Undecided Verdict = "undecided"
)

// none is the index of an event or an operation that does not exist.
const none = -1

func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
