package check_test

import (
	"fmt"
	"testing"
	"time"

	"oversell/lab/history"
)

const (
	key = "stock:1"
	ms  = time.Millisecond
)

// recording returns a recording of steps such as "12 ann granted": at 12 ms, the owner ann was
// granted the lock on replica-ann. "12 ann written 7" is a write with the fencing token 7.
func recording(t *testing.T, steps ...string) history.Recording {
	t.Helper()
	var rec history.Recording
	for _, step := range steps {
		e := history.Event{Key: key}
		var at int
		n, err := fmt.Sscan(step, &at, &e.Owner, &e.Step, &e.Fence)
		if n < 3 {
			t.Fatalf("%q: %v", step, err)
		}
		e.At, e.Replica = time.Duration(at)*ms, "replica-"+e.Owner
		rec.Events = append(rec.Events, e)
	}
	return rec
}

// killed adds the kill of the owner's replica to the recording.
func killed(rec history.Recording, owner string, from, to time.Duration) history.Recording {
	replica := "replica-" + owner
	rec.Spans = append(rec.Spans, history.Span{What: "killed " + replica, Who: replica, From: from, To: to})
	return rec
}
