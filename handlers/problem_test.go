package handlers

import (
	"testing"

	"oversell/locks"
)

// TestOutcomesAgree checks that two lists agree: the errors after which no stock was taken, and the
// outcomes after which a client may send the request again.
func TestOutcomesAgree(t *testing.T) {
	for _, o := range outcomes {
		if got, want := o.outcome.TookNothing(), locks.NothingTaken(o.err); got != want {
			t.Errorf("%q is answered as %s: TookNothing is %v, and NothingTaken of the error is %v", o.err, o.outcome, got, want)
		}
	}
}
