package mysqllock

import (
	"context"
	"math/rand/v2"
	"time"
)

// longestPause is the mean pause after a conflict at the beginning of a wait, shortestPause that
// near its end.
const (
	longestPause  = 80 * time.Millisecond
	shortestPause = time.Millisecond
	// lastAttempt is the time that a pause leaves for one more attempt.
	lastAttempt = 5 * time.Millisecond
)

// backoff is the retry state of one call.
type backoff struct {
	began   time.Time
	wait    time.Duration
	attempt time.Time // the beginning of the present attempt
	// minPause is the least mean of a pause, as a multiple of the time of an attempt; 0 where
	// one of the competing requests always succeeds.
	minPause time.Duration
}

func newBackoff(wait time.Duration) *backoff {
	return &backoff{began: time.Now(), wait: wait, attempt: time.Now()}
}

// left returns the rest of the wait.
func (p *backoff) left() time.Duration { return max(0, p.wait-time.Since(p.began)) }

// pause waits before the next attempt, at random, so that requests that collided do not collide
// again. False: there is no time for another attempt.
func (p *backoff) pause(ctx context.Context) bool {
	mean := max(meanPause(p.left(), p.wait), p.minPause*time.Since(p.attempt))
	most := p.left() - lastAttempt
	if most <= 0 {
		return false
	}
	pause := min(rand.N(2*mean), most) //nolint:gosec // jitter, not a secret
	defer func() { p.attempt = time.Now() }()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// meanPause returns a pause that shrinks towards the end of the wait, fast at first. The usual
// back-off grows instead: then new requests, which try most often, overtake the oldest.
func meanPause(left, wait time.Duration) time.Duration {
	if wait <= 0 {
		return shortestPause
	}
	share := float64(left) / float64(wait)
	return shortestPause + time.Duration(float64(longestPause-shortestPause)*share*share)
}
