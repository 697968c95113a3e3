package lockstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Subject is one strategy under test.
type Subject struct {
	Card api.Card
	Crew *Crew

	// NewProduct puts a product of so many pieces into the stock. Every check
	// has its own, and with it a key of its own, so checks don't meet.
	NewProduct func(ctx context.Context, count int) (int64, error)
	// Count reads what is left of it.
	Count func(ctx context.Context, product int64) (int, error)

	// Lease is short, for the checks that let one run out, and long enough for
	// a busy machine to renew it in time.
	Lease time.Duration
	// Patience is what must happen's last moment, and generous: when it is over,
	// the thing never happens.
	Patience time.Duration

	// Operations counts what a backend was asked so far, for checks that are Alone.
	Operations map[string]func(ctx context.Context) (int64, error)

	// Outages stop and start what the card names as backends, for Alone checks.
	Outages map[string]Outage
}

// Outage takes a backend away and brings it back.
type Outage struct {
	Stop, Start func(ctx context.Context) error
}

// peer is the subject's strategy in one worker.
type peer struct {
	*Worker
	subject *Subject
}

// peer returns the strategy in the nth worker, whose leases are long.
func (s *Subject) peer(ctx context.Context, n int) (peer, error) {
	w, err := s.Crew.Shared(ctx, n, s.Crew.Long)
	return peer{w, s}, err
}

// peers returns the strategy in n processes; all in one where its scope is one.
func (s *Subject) peers(ctx context.Context, n int) ([]peer, error) {
	return s.gather(ctx, n, s.Crew.Long)
}

// briskPair is two peers whose leases are short, also where a request can't say so.
func (s *Subject) briskPair(ctx context.Context) ([]peer, error) {
	if s.Card.LeasePerRequest {
		return s.peers(ctx, 2)
	}
	return s.gather(ctx, 2, s.Lease)
}

func (s *Subject) gather(ctx context.Context, n int, lease time.Duration) ([]peer, error) {
	all := make([]peer, n)
	for i := range all {
		seat := i
		if s.Card.Scope == api.ScopeProcess {
			seat = 0
		}
		w, err := s.Crew.Shared(ctx, seat, lease)
		if err != nil {
			return nil, err
		}
		all[i] = peer{w, s}
	}
	return all, nil
}

// recruit returns the strategy in a process of the caller's own, to be stopped
// and killed. Its default lease is short only where a request can't say so:
// otherwise that would hide a request's lease that is not heard.
func (s *Subject) recruit(ctx context.Context) (peer, error) {
	lease := s.Lease
	if s.Card.LeasePerRequest {
		lease = s.Crew.Long
	}
	w, err := s.Crew.Recruit(ctx, lease)
	return peer{w, s}, err
}

// newKey returns a key that nobody else locks.
func (s *Subject) newKey(ctx context.Context) (string, error) {
	product, err := s.NewProduct(ctx, 1)
	return api.Key(product), err
}

// short is a request whose lease runs out within the test, patient one whose
// lease does not. Both have a wait of 0.
func (s *Subject) short(key, owner string) locks.Request { return s.request(key, owner, s.Lease) }

func (s *Subject) long(key, owner string) locks.Request { return s.request(key, owner, s.Crew.Long) }

func (s *Subject) request(key, owner string, lease time.Duration) locks.Request {
	r := locks.Request{Key: key, Owner: owner}
	if s.Card.LeasePerRequest {
		r.Lease = lease
	}
	return r
}

// waiting is r with that much patience.
func waiting(r locks.Request, wait time.Duration) locks.Request {
	r.Wait = wait
	return r
}

// held is a hold in a worker.
type held struct {
	peer
	call  *call
	fence int64
	took  time.Duration // until it was granted
}

// acquire returns the hold, or the error of the locker. A backend that is away
// for a moment, as a busy machine may make it seem, is asked again: outages have
// a check of their own.
func (p peer) acquire(ctx context.Context, r locks.Request) (held, error) {
	for began := time.Now(); ; settle(ctx) {
		c, err := p.acquiring(r)
		if err != nil {
			return held{}, err
		}
		h, err := p.granted(ctx, c)
		if !errors.Is(err, stock.ErrUnavailable) || time.Since(began) > p.subject.Patience {
			return h, err
		}
	}
}

// acquiring asks, and does not wait for the grant.
func (p peer) acquiring(r locks.Request) (*call, error) {
	return p.send(command{Do: doAcquire, Strategy: p.subject.Card.ID, Request: r})
}

// granted waits for the grant that acquiring asked for.
func (p peer) granted(ctx context.Context, c *call) (held, error) {
	r, err := c.wait(ctx)
	if err == nil {
		err = r.err()
	}
	return held{peer: p, call: c, fence: r.Fence, took: r.Took}, err
}

func (h held) release(ctx context.Context) error {
	return h.order(ctx, command{Do: doRelease, Of: h.call.id})
}

// releaseCancelled releases under a context that has ended.
func (h held) releaseCancelled(ctx context.Context) error {
	return h.order(ctx, command{Do: doRelease, Of: h.call.id, Cancelled: true})
}

// check is Hold.Check.
func (h held) check(ctx context.Context) error {
	return h.order(ctx, command{Do: doCheck, Of: h.call.id})
}

// lost waits until the hold's context ends and returns its cause; nil: it did
// not end within that time.
func (h held) lost(ctx context.Context, within time.Duration) error {
	return h.order(ctx, command{Do: doLost, Of: h.call.id, Wait: within})
}

func (p peer) order(ctx context.Context, c command) error {
	c.Strategy = p.subject.Card.ID
	r, err := p.do(ctx, c)
	if err != nil {
		return err
	}
	return r.err()
}

// clear wipes the key's state in the backend, whoever holds it.
func (p peer) clear(ctx context.Context, key string) error {
	return p.order(ctx, command{Do: doClear, Request: locks.Request{Key: key}})
}

// deduct sells, and returns the strategy's error.
func (p peer) deduct(ctx context.Context, o stock.Order) error {
	return p.order(ctx, command{Do: doDeduct, Order: o})
}

// deducting begins to sell and returns when the sale stands at the step.
func (p peer) deducting(ctx context.Context, o stock.Order, at api.Step) (*call, error) {
	c, err := p.send(command{Do: doDeduct, Strategy: p.subject.Card.ID, Order: o, Step: at})
	if err != nil {
		return nil, err
	}
	if err := c.untilPaused(ctx); err != nil {
		return nil, fmt.Errorf("pause at %s: %w", at, err)
	}
	return c, nil
}

// sale waits for the end of a sale that was begun.
func (c *call) sale(ctx context.Context) (stock.Receipt, error) {
	r, err := c.wait(ctx)
	if err == nil {
		err = r.err()
	}
	return r.Receipt, err
}
