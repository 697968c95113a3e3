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

// trial is one run of a check. An unexpected result panics, so checks need no error handling.
type trial struct {
	*Config
	ctx context.Context
}

type failure struct{ err error }

func (c *Config) try(ctx context.Context, check func(*trial)) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.err
		default:
			panic(ended)
		}
	}()
	check(&trial{c, ctx})
	return nil
}

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// wrong is fail for what no stall explains: see errContradiction.
func wrong(format string, args ...any) { panic(failure{contradiction{fmt.Errorf(format, args...)}}) }

func must(step string, err error) {
	if err != nil {
		fail("%s: %w", step, err)
	}
}

func mustBe(step string, err error, wanted ...error) {
	for _, want := range wanted {
		if !errors.Is(err, want) {
			fail("%s: got %v, want %q", step, orNone(err), want)
		}
	}
}

func orNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// settle gives a request time to arrive and to begin its wait. If this time is too short, a check
// may miss a flaw, but no check fails.
func settle(ctx context.Context) { _ = locks.Work(ctx, 100*time.Millisecond) }

// participant is the strategy under test in one worker.
type participant struct {
	*trial
	worker *Worker
}

// participants returns the strategy in n processes, or n times in one process if its lock works in
// one process only. lease is the default lease, for strategies whose requests cannot choose one.
func (t *trial) participants(n int, lease time.Duration) []participant {
	all := make([]participant, n)
	for i := range all {
		if t.Card.Scope == api.ScopeProcess && i > 0 {
			all[i] = all[0]
		} else {
			all[i] = t.participant(i, lease)
		}
	}
	return all
}

func (t *trial) participant(n int, lease time.Duration) participant {
	w, err := t.Workers.shared(t.ctx, n, lease)
	must("start a worker", err)
	return participant{t, w}
}

// pair returns two participants whose leases do not expire, and a new key.
func (t *trial) pair() (first, second participant, key string) {
	all := t.participants(2, t.Workers.Lease)
	return all[0], all[1], t.newKey()
}

// shortPair returns two participants whose leases can expire during a check, even if requests
// cannot choose their lease. It also returns a new key.
func (t *trial) shortPair() (first, second participant, key string) {
	all := t.participants(2, t.defaultLease())
	return all[0], all[1], t.newKey()
}

// alone returns a participant in a process of its own, which the check may pause or kill.
func (t *trial) alone() participant {
	w, err := t.Workers.start(t.ctx, t.defaultLease())
	must("start a worker", err)
	return participant{t, w}
}

// defaultLease is short only if requests cannot choose their lease. Otherwise, a short default
// lease would hide that a strategy ignores the lease of a request.
func (t *trial) defaultLease() time.Duration {
	if t.Card.LeasePerRequest {
		return t.Workers.Lease
	}
	return t.Lease
}

func (t *trial) newProduct(count int) int64 {
	product, err := t.NewProduct(t.ctx, count)
	must("add a product", err)
	return product
}

func (t *trial) newKey() string { return api.Key(t.newProduct(1)) }

// The lease of long's request outlasts a check. The lease of short's request can expire.
func (t *trial) long(key, owner string, wait time.Duration) locks.Request {
	return t.request(key, owner, wait, t.Workers.Lease)
}

func (t *trial) short(key, owner string) locks.Request { return t.request(key, owner, 0, t.Lease) }

// request has an owner that no other task has: the same word in another check is another task.
func (t *trial) request(key, owner string, wait, lease time.Duration) locks.Request {
	if !t.Card.LeasePerRequest {
		lease = 0
	}
	return locks.Request{Key: key, Owner: owner + "/" + key, Wait: wait, Lease: lease}
}

func (p participant) send(c command) *call {
	c.Strategy = p.Card.ID
	sent, err := p.worker.send(c)
	must("send a command", err)
	return sent
}

func (p participant) await(c *call) reply {
	r, err := c.wait(p.ctx)
	must("wait for an answer", err)
	return r
}

func (p participant) awaitSoon(what string, c *call) reply {
	ctx, cancel := context.WithTimeout(p.ctx, p.Timeout)
	defer cancel()
	r, err := c.wait(ctx)
	if ctx.Err() != nil && p.ctx.Err() == nil {
		fail("%s: it did not get the lock within %v", what, p.Timeout)
	}
	must(what, err)
	return r
}

func (p participant) do(c command) reply { return p.await(p.send(c)) }

type heldLock struct {
	participant
	call  *call
	fence int64
	took  time.Duration // from the request to its answer
	key   string
	what  string // the words of its acquire
}

func (p participant) begin(r locks.Request) *call {
	return p.send(command{Do: doAcquire, Request: r})
}

func (p participant) acquire(what string, r locks.Request) heldLock {
	h, err := p.tryAcquire(r)
	must(what, err)
	h.what = what
	return h
}

// tryAcquire repeats a request if the backend was unavailable, as may happen on a busy machine.
func (p participant) tryAcquire(r locks.Request) (h heldLock, err error) {
	var earlier error
	for began := time.Now(); ; settle(p.ctx) {
		h, err = p.try(r)
		if !errors.Is(err, stock.ErrUnavailable) || time.Since(began) > p.Timeout {
			if err != nil && earlier != nil && !errors.Is(err, stock.ErrUnavailable) {
				err = fmt.Errorf("%w; the try before it failed: %w", err, earlier) // and may have left the lock behind
			}
			return h, err
		}
		earlier = err
	}
}

// try sends a request once: a lock may refuse its key.
func (p participant) try(r locks.Request) (heldLock, error) {
	c := p.begin(r)
	answer := p.await(c)
	return heldLock{participant: p, call: c, fence: answer.Fence, took: answer.Took, key: r.Key}, answer.err()
}

// mustFindFree acquires the key within Timeout, and releases it. A lock that an earlier request
// left behind has a longer lease, so the acquisition fails.
func (p participant) mustFindFree(key, owner string) {
	p.mustBeFree("the key must be free", key, owner, p.Timeout)
}

// mustFindFreeNow acquires the key at once. A lock of another program may have no single try: then its adapter ends a
// short wait, which may be too short on a busy machine. It gets half of a lease.
func (p participant) mustFindFreeNow(key, owner string) {
	wait := time.Duration(0)
	if p.Card.Family == "adapter" {
		wait = p.Lease / 2
	}
	p.mustBeFree("the key must be free at once", key, owner, wait)
}

// mustBeFree tries a key again that was not free, for a time that no stall explains.
func (p participant) mustBeFree(what, key, owner string, wait time.Duration) {
	h, err := p.tryAcquire(p.long(key, owner, wait))
	if errors.Is(err, locks.ErrNotAcquired) {
		if _, again := p.tryAcquire(p.long(key, owner, p.Timeout)); errors.Is(again, locks.ErrNotAcquired) {
			wrong("%s: %w", what, err)
		}
	}
	must(what, err)
	h.mustRelease()
}

// mustNotAcquire tries a key whose holder has the longest lease that it can request. No stall ends a long one.
func (p participant) mustNotAcquire(what, key, owner string) {
	_, err := p.tryAcquire(p.long(key, owner, 0))
	if what += ": a try of " + owner + " for the held key"; err == nil && p.Card.LeasePerRequest {
		wrong("%s: got no error, want %q", what, locks.ErrNotAcquired)
	}
	mustBe(what, err, locks.ErrNotAcquired)
}

// mustBeRefused checks the release of a lock that is lost, or was released before.
func (t *trial) mustBeRefused(step string, err error) {
	if t.Card.SilentRelease && err == nil {
		return
	}
	if err == nil && t.Card.Family == "adapter" {
		fail(`%s: got "released", want "not_held" (a release without a result in the library says so in the hello: "release_result":false)`, step)
	}
	mustBe(step, err, locks.ErrNotHeld)
}

func (h heldLock) release() error { return h.do(command{Do: doRelease, Of: h.call.id}).err() }

func (h heldLock) mustRelease() { must("release", h.release()) }

func (h heldLock) verify() error { return h.do(command{Do: doVerify, Of: h.call.id}).err() }

// lost returns the cause with which the lock's context ends, or nil if it does not end in time.
func (h heldLock) lost(within time.Duration) error {
	return h.do(command{Do: doLost, Of: h.call.id, Wait: within}).err()
}

func (p participant) clear(key string) {
	must("clear the key in the backend", p.do(command{Do: doClear, Request: locks.Request{Key: key}}).err())
}

func order(product int64, owner string, wait time.Duration) stock.Order {
	return stock.Order{Product: product, Qty: 1, Owner: fmt.Sprintf("%s/%d", owner, product), Wait: wait}
}

func (p participant) deduct(o stock.Order) (stock.Receipt, error) {
	r := p.do(command{Do: doDeduct, Order: o})
	return r.Receipt, r.err()
}

func (p participant) deductUntil(o stock.Order, step api.Step) *call {
	c := p.send(command{Do: doDeduct, Order: o, Step: step})
	must("stop the sale at "+string(step), c.reached(p.ctx))
	return c
}

func (t *trial) remaining(product int64) int {
	count, err := t.Count(t.ctx, product)
	must("count the product", err)
	return count
}
