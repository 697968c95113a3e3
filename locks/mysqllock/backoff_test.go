package mysqllock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeanPause(t *testing.T) {
	for _, test := range []struct{ left, wait, want time.Duration }{
		{10 * time.Second, 10 * time.Second, longestPause},
		{0, 10 * time.Second, shortestPause},
		{5 * time.Second, 10 * time.Second, (longestPause + 3*shortestPause) / 4},
		{0, 0, shortestPause},
	} {
		if got := meanPause(test.left, test.wait); got != test.want {
			t.Errorf("with %v left of %v: %v, want %v", test.left, test.wait, got, test.want)
		}
	}
}

// TestPauses checks that attempts are made until the wait is over, and none after the wait.
func TestPauses(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Millisecond, time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began, b, attempts := time.Now(), newBackoff(wait), 1
			for b.pause(t.Context()) {
				attempts++
			}
			if took := time.Since(began); took > wait {
				t.Errorf("the attempts for a wait of %v took %v", wait, took)
			}
			if wait >= time.Second && (attempts < int(wait/longestPause) || attempts > int(wait/shortestPause)) {
				t.Errorf("%d attempts in %v", attempts, wait)
			}
		})
	}
}

func TestPausesOfCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newBackoff(time.Hour)
	for range 100 { // the pause is random, and may be 0
		if b.pause(ctx) {
			t.Fatal("one more attempt for a cancelled request")
		}
	}
}
