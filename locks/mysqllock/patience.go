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
	// lastAttempt is left for the last one.
	lastAttempt = 5 * time.Millisecond
)

// backoff is the retry state of one call.
type backoff struct {
	began   time.Time
	wait    time.Duration
	attempt time.Time // when the one under way began
	// minPause is how many attempts' time a pause lasts at least, on average; 0 where
	// of all who meet, one always gets through.
	minPause time.Duration
}

func newBackoff(wait time.Duration) *backoff {
	return &backoff{began: time.Now(), wait: wait, attempt: time.Now()}
}

// left is how much of the wait is left.
func (p *backoff) left() time.Duration { return max(0, p.wait-time.Since(p.began)) }

// pause waits before the next attempt, at random, so that those who were beaten
// together don't meet again. False: there is no time for another attempt.
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

// meanPause shrinks as the wait runs out, fast at first. The usual backoff grows instead, and
// then newcomers, who ask most often, overtake whoever has waited longest.
func meanPause(left, wait time.Duration) time.Duration {
	if wait <= 0 {
		return shortestPause
	}
	share := float64(left) / float64(wait)
	return shortestPause + time.Duration(float64(longestPause-shortestPause)*share*share)
}
