package mysqllock

import (
	"context"
	"math/rand/v2"
	"time"
)

// longestPause is the mean pause of a newcomer that was beaten, shortestPause
// that of one whose wait is nearly over.
const (
	longestPause  = 80 * time.Millisecond
	shortestPause = time.Millisecond
)

// patience is the retry state of one call.
type patience struct {
	began time.Time
	wait  time.Duration
}

func newPatience(wait time.Duration) *patience { return &patience{time.Now(), wait} }

// left is how much of the wait is left.
func (p *patience) left() time.Duration { return max(0, p.wait-time.Since(p.began)) }

// pause waits before the next attempt, at random, so that those who were beaten
// together don't meet again. False: there is no time for another attempt.
func (p *patience) pause(ctx context.Context) bool {
	pause := rand.N(2 * meanPause(p.left(), p.wait)) //nolint:gosec // jitter, not a secret
	if pause >= p.left() {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// meanPause shrinks as the wait runs out, fast at first. The usual backoff grows instead, and
// then newcomers, who ask most often, overtake whoever has waited longest.
func meanPause(left, wait time.Duration) time.Duration {
	if wait <= 0 {
		return shortestPause
	}
	share := float64(left) / float64(wait)
	return shortestPause + time.Duration(float64(longestPause-shortestPause)*share*share)
}
