package check

import "time"

// The steps of a sale that the checks use, as the service names them.
const (
	granted  = "granted"
	writing  = "writing"
	written  = "written"
	released = "released"
)

// none is the index of an event or an operation that does not exist.
const none = -1

// brief rounds a duration for a sentence.
func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
