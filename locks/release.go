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
	// prompt is the time within which a release must fail to be repeated while its caller
	// waits. Such a failure is a broken connection, and the next one is new.
	prompt = 100 * time.Millisecond
	// The pauses between two tries in the background.
	shortestPause = 5 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

// inBackground is the number of releases that are repeated in the background.
var inBackground atomic.Int64 //nolint:gochecknoglobals // a process ends only once

// AwaitReleases waits for the releases that are repeated in the background, until ctx ends.
// A process that stops calls it before it closes its connections.
func AwaitReleases(ctx context.Context) {
	look := time.NewTicker(shortestPause)
	defer look.Stop()
	for inBackground.Load() > 0 && ctx.Err() == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// GiveBack sends a release, and sends it again where no answer came: once while the caller
// waits, then in the background until the given time. Otherwise one broken connection would
// leave the lock locked until its lease ends.
//
// Send must name the grant: sent twice, it must not release another one. It answers
// ErrNotHeld where there is nothing to release. After a request without an answer, that
// means that this request released the lock, and GiveBack returns nil.
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

// Sent reports whether a backend may have carried out a request that failed with err. It
// has not where no connection was made, or where MySQL rolled the statement back.
func Sent(err error) bool {
	var dial *net.OpError
	notConnected := errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, driver.ErrBadConn)
	return !notConnected && !stock.IsContention(err)
}
