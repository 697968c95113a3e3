package locks

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"oversell/stock"
)

const (
	// prompt limits the quick repetition of a release. If the first release fails within this time,
	// its connection was probably broken. Then the release is sent again at once, on a new connection.
	prompt = 100 * time.Millisecond
	// The pauses between the tries in the background grow from shortestPause to longestPause.
	shortestPause = 5 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

var inBackground atomic.Int64 //nolint:gochecknoglobals // a process ends only once

// AwaitReleases waits for the releases that are repeated in the background, until ctx ends.
// A process calls it before it closes its connections and ends.
func AwaitReleases(ctx context.Context) {
	for inBackground.Load() > 0 && ctx.Err() == nil {
		select {
		case <-time.After(shortestPause):
		case <-ctx.Done():
		}
	}
}

// GiveBack sends a release, even if ctx has ended. If it fails quickly without an answer, GiveBack repeats it once while
// the caller waits. Without an answer, GiveBack then repeats it in the background until the given
// time. Otherwise one broken connection would keep the key locked until the lease ends. send must
// name the grant, so that a second release cannot free the lock of another holder. send returns
// ErrNotHeld if the grant does not exist. After a lost answer, ErrNotHeld means that the lock was
// released, and GiveBack returns nil.
func GiveBack(ctx context.Context, until time.Time, send func(context.Context) error) error {
	ctx, cancel := CleanUp(ctx)
	defer cancel()
	unsure := false // a request without an answer may have released the lock
	try := func(ctx context.Context) error {
		err := send(ctx)
		if unsure && errors.Is(err, ErrNotHeld) {
			return nil
		}
		unsure = unsure || !answered(err) && Sent(err)
		return err
	}
	began := time.Now()
	err := try(ctx)
	if !answered(err) && time.Since(began) < prompt {
		err = try(ctx)
	}
	if !answered(err) && time.Now().Before(until) {
		repeat(ctx, until, func(ctx context.Context) bool { return answered(try(ctx)) })
	}
	return err
}

// Sweep is GiveBack for an acquisition without an answer on a server that executes the requests of several
// connections in any order, as MySQL does after a hang: the acquisition may come after its release. So Sweep
// repeats a release that found nothing, until releaseTimeout after its first answer, but no longer than limit.
func Sweep(ctx context.Context, limit time.Duration, send func(context.Context) error) {
	end, until := time.Now().Add(limit), time.Time{}
	swept := func(ctx context.Context) bool {
		err := send(ctx)
		if until.IsZero() && answered(err) {
			until = time.Now().Add(releaseTimeout)
		}
		return err == nil || !until.IsZero() && time.Now().After(until)
	}
	trying, cancel := CleanUp(ctx)
	defer cancel()
	if !swept(trying) {
		repeat(ctx, end, swept)
	}
}

// repeat calls try in the background, with growing pauses, until it is done or the given time has come.
func repeat(ctx context.Context, until time.Time, try func(context.Context) (done bool)) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	inBackground.Add(1)
	go func() {
		defer inBackground.Add(-1)
		defer cancel()
		for pause := shortestPause; ; pause = min(2*pause, longestPause) {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			trying, stop := context.WithTimeout(ctx, releaseTimeout)
			done := try(trying)
			stop()
			if done {
				return
			}
		}
	}()
}

func answered(err error) bool { return err == nil || errors.Is(err, ErrNotHeld) }

// Sent reports whether a backend may have carried out a request that failed with err. It returns
// false if there was no connection, or if MySQL rolled the statement back.
func Sent(err error) bool {
	return !stock.NotSent(err) && !stock.IsContention(err)
}
