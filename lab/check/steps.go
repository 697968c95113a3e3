package check

import "time"

// The steps of a deduction that the checkers know, by the service's own words.
const (
	granted  = "granted"
	writing  = "writing"
	written  = "written"
	released = "released"
)

// none is the index of an event or an operation that does not exist.
const none = -1

// brief cuts a duration down to what a sentence needs.
func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
