package rigtest

import (
	"testing"
	"time"
)

// Patience is the longest wait for a condition. A lab takes more than a minute to start where
// other tests start theirs on two cores.
const Patience = 5 * time.Minute

// Eventually calls check again and again until check returns true. After Patience, it fails the
// test with the last text that check returned.
func Eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ok, state := check()
		if ok {
			return
		}
		last = state
	}
	t.Fatalf("not within %v: %s; last state: %s", Patience, what, last)
}
