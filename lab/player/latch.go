package player

import (
	"context"
	"net/url"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/check"
	"oversell/lab/history"
)

// latchOwner is the owner, in check.LockModel, of the permits of a latch that is set. Each count-down frees one of these
// permits.
const latchOwner = "the latch"

// count lets a client count the latch down.
func (r *run) count(ctx context.Context, b *buyer) error {
	h := &byHand{Move: chaos.Move{Do: chaos.Counts}, on: b.on, act: check.LockOp{Act: check.Leave, Owner: latchOwner, Permits: 1}}
	return r.ask(ctx, b, h, r.subject.Primitive.free, url.Values{})
}

// openLatch counts the latch down until the latch opens and all requests that await it go on. A delayed request may set
// the latch again, so openLatch repeats this. It returns history.Refused if a request still waits although the latch is
// open, or if this takes too long.
func (r *run) openLatch(ctx context.Context) (history.Outcome, error) {
	waited, began := false, time.Now()
	for time.Since(began) < 4*GrantBound {
		last := &buyer{on: 1}
		if err := r.count(ctx, last); err != nil {
			return history.Refused, err
		}
		<-last.ended
		switch answer := last.hand.answer; {
		case answer.Set && waited:
			return history.Refused, nil
		case last.hand.failed != nil || answer.Left > 0:
			continue
		}
		waited = true
		if r.awaitWoken(ctx, GrantBound) == nil {
			return history.OK, nil
		}
	}
	return history.Refused, nil
}

// awaitWoken waits until no request awaits the latch.
func (r *run) awaitWoken(ctx context.Context, limit time.Duration) error {
	waits := func(b *buyer) bool { return b.running() && b.hand.Do == chaos.Awaits }
	return Within(ctx, limit, "the requests go on", func() bool { return !slices.ContainsFunc(r.clients[:], waits) })
}

// latchActs returns the operations on a latch for check.LockModel, and their events for the timeline. A count-down
// without an answer may have taken effect at any time. After a fault of the server, the latch may be gone, and so open.
func (r *run) latchActs(rec history.Recording) (acts []check.LockOp, events []history.Event) {
	for _, h := range r.hands {
		act := h.act
		if h.failed != nil {
			if act.Act == check.Leave {
				act.Return = check.Open
				acts = append(acts, act)
			}
			continue
		}
		if h.answer.Set {
			set := check.LockOp{Act: check.Enter, Owner: latchOwner, Permits: 1, Call: act.Call, Return: act.Return}
			acts = append(acts, slices.Repeat([]check.LockOp{set}, r.subject.Primitive.Latch)...)
		}
		acts = append(acts, act)
		if act.Act == check.Enter {
			free := act
			free.Act = check.Leave
			acts = append(acts, free)
			events = append(events, r.event(h, api.Asked, act.Call), r.event(h, api.Granted, act.Return), r.event(h, api.Released, act.Return))
		}
	}
	for _, s := range rec.Spans {
		if !s.OnReplica() {
			acts = append(acts, check.LockOp{Act: check.Expire, Owner: latchOwner, Call: s.From, Return: check.Open})
		}
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return int(a.At - b.At) })
	return acts, events
}

// openedEarly reports whether a request set the latch, and went on before enough requests had counted the latch down.
// check.LockModel cannot find this: it knows no order between the two acts of one request.
func (r *run) openedEarly(rec history.Recording) bool {
	gone := slices.ContainsFunc(rec.Spans, func(s history.Span) bool { return !s.OnReplica() })
	return !gone && slices.ContainsFunc(r.hands, func(h *byHand) bool {
		counted := 0
		for _, other := range r.hands {
			if other.Do == chaos.Counts && other.act.Call < h.act.Return && (other.failed != nil || other.act.Return > h.act.Call) {
				counted++
			}
		}
		return h.Do == chaos.Awaits && h.failed == nil && h.answer.Set && counted < r.subject.Primitive.Latch
	})
}
