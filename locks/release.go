package locks

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"oversell/stock"
)

const (
	// prompt limits the duration of a failed release that is repeated while its caller waits. A
	// failure within this time is a broken connection, and the next try opens a new one.
	prompt = 100 * time.Millisecond
	// The pauses between two tries in the background.
	shortestPause = 5 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

// inBackground is the number of releases that are repeated in the background.
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

// GiveBack sends a release, and repeats it if no answer came: once while the caller waits, then
// in the background until the given time. Otherwise one broken connection would keep the key
// locked until the lease ends.
//
// send must name the grant, so that a second release cannot free the lock of another holder. It
// returns ErrNotHeld if there is nothing to release. After a request without an answer,
// ErrNotHeld means that the request released the lock, and GiveBack returns nil.
func GiveBack(ctx context.Context, until time.Time, send func(context.Context) error) error {
	g, began := &givingBack{send: send}, time.Now()
	err := g.try(ctx)
	if !answered(err) && time.Since(began) < prompt {
		err = g.try(ctx)
	}
	if !answered(err) && time.Now().Before(until) {
		inBackground.Add(1)
		go func() {
			defer inBackground.Add(-1)
			g.insist(context.WithoutCancel(ctx), until)
		}()
	}
	return err
}

type givingBack struct {
	send   func(context.Context) error
	unsure bool // a request without an answer may have released the lock
}

func (g *givingBack) try(ctx context.Context) error {
	err := g.send(ctx)
	if g.unsure && errors.Is(err, ErrNotHeld) {
		return nil
	}
	g.unsure = g.unsure || !answered(err) && Sent(err)
	return err
}

// insist repeats the release until an answer comes, or until the given time.
func (g *givingBack) insist(ctx context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		trying, done := context.WithTimeout(ctx, releaseTimeout)
		err := g.try(trying)
		done()
		if answered(err) {
			return
		}
	}
}

func answered(err error) bool { return err == nil || errors.Is(err, ErrNotHeld) }

// Sent reports whether a backend may have carried out a request that failed with err. The
// backend has not if there was no connection, or if MySQL rolled the statement back.
func Sent(err error) bool {
	var dial *net.OpError
	notConnected := errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, driver.ErrBadConn)
	return !notConnected && !stock.IsContention(err)
}
