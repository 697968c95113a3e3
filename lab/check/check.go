// Package check decides from the history of a run whether its invariants held. It needs no server,
// and gives the same verdict each time for the same history.
package check

import "time"

// none is the index of an event or an operation that does not exist.
const none = -1

func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
