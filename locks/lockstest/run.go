package lockstest

import (
	"context"
	"testing"
	"time"
)

// Run puts the subject through every check that can run beside others, as
// parallel subtests. Those that are Alone are for RunAlone.
func Run(t *testing.T, s *Subject) {
	for _, c := range Checks() {
		if !c.Alone && c.Claim(s.Card) != Silent {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				run(t, s, c)
			})
		}
	}
}

// RunAlone runs the checks that take backends away, one after the other. The
// subject's Outages must have every backend that its card names.
func RunAlone(t *testing.T, s *Subject) {
	for _, c := range Checks() {
		if c.Alone && c.Claim(s.Card) != Silent {
			t.Run(c.Name, func(t *testing.T) { run(t, s, c) })
		}
	}
}

// checkTimeout ends a check that hangs.
const checkTimeout = 3 * time.Minute

func run(t *testing.T, s *Subject, c Check) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), checkTimeout)
	defer cancel()
	if err := c.Run(ctx, s); err != nil {
		t.Errorf("the card of %s claims: %s\nseen: %v", s.Card.ID, c.claimed(s.Card), err)
	}
}
