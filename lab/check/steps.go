package check

import (
	"time"

	"oversell/lab/history"
)

// The steps of a deduction that the checkers know, by the service's own words.
const (
	asked    = "asked"
	queued   = "queued"
	granted  = "granted"
	writing  = "writing"
	written  = "written"
	released = "released"
)

// none is the index of an event or an operation that does not exist.
const none = -1

// recorded is when the last thing in the recording was over.
func recorded(rec history.Recording) time.Duration {
	var end time.Duration
	for i := range rec.Events {
		end = max(end, rec.Events[i].At)
	}
	for i := range rec.Ops {
		end = max(end, rec.Ops[i].Return)
	}
	for i := range rec.Spans {
		end = max(end, rec.Spans[i].To)
	}
	return end
}

// brief cuts a duration down to what a sentence needs.
func brief(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
