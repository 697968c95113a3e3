package mysqllock

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// patience is the retry state of one call: how long it may still wait, and a
// growing, jittered pause between attempts, so that rivals don't meet again.
type patience struct {
	deadline time.Time
	pauses   *backoff.ExponentialBackOff
}

func newPatience(wait time.Duration) *patience {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = 2 * time.Millisecond
	pauses.MaxInterval = 50 * time.Millisecond
	return &patience{deadline: time.Now().Add(wait), pauses: pauses}
}

func (p *patience) left() time.Duration { return max(0, time.Until(p.deadline)) }

// pause waits before the next attempt; false: there is no time for one.
func (p *patience) pause(ctx context.Context) bool {
	wait := p.pauses.NextBackOff()
	if wait > p.left() {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
