package lockstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
	"oversell/stock"
)

func storm(t *trial) {
	const stocked, tasks, rounds = 40, 4, 5
	all, product := t.participants(3, t.Workers.Lease), t.newProduct(stocked)
	calls := make([]*call, len(all))
	for i, p := range all {
		o := order(product, fmt.Sprintf("buyer-%d", i), t.Workers.Lease)
		calls[i] = p.send(command{Do: doStorm, Order: o, Tasks: tasks, Rounds: rounds})
	}
	outcomes := map[string]int{}
	for i, c := range calls {
		for outcome, n := range all[i].await(c).Outcomes {
			outcomes[outcome] += n
		}
	}
	left, ordered := t.remaining(product), len(all)*tasks*rounds
	if outcomes[sold] != stocked || left != 0 || outcomes[outcomeOf(stock.ErrSoldOut)] != ordered-stocked {
		fail("%d in stock, %d ordered: outcomes %v, %d left", stocked, ordered, outcomes, left)
	}
}

func refusals(t *trial) {
	const stocked = 3
	all, product := t.participants(2, t.Workers.Lease), t.newProduct(stocked)
	tooMuch := order(product, "buyer", t.Timeout)
	tooMuch.Qty = stocked + 1
	_, err := all[0].deduct(tooMuch)
	mustBe("an order of 4 of 3 pieces", err, stock.ErrSoldOut)
	_, err = all[0].deduct(order(1<<60, "buyer", t.Timeout))
	mustBe("an order of an unknown product", err, stock.ErrUnknownProduct)

	o, step := order(product, "cancelled-buyer", t.Timeout), cmp.Or(t.Card.CriticalStep, api.Read)
	if step != api.Writing { // otherwise the sale would work for a lease before that step
		o.Work = t.Workers.Lease
	}
	sale := all[0].deductUntil(o, step)
	must("cancel the sale", sale.cancel(t.ctx))
	must("resume the sale", sale.resume(t.ctx))
	mustBe("a sale that was cancelled before its write", all[0].await(sale).err(), stock.ErrCancelled, errCancelled)

	if left := t.remaining(product); left != stocked {
		fail("%d of %d pieces are left, and none was sold", left, stocked)
	}
	_, err = all[1].deduct(order(product, "next", t.Timeout))
	must("a sale after the rejected ones", err)
}

// outage stops and restarts each backend. The strategy must sell again without being opened again.
func outage(t *trial) {
	const stocked = 100
	p, product, made := t.participant(0, t.Workers.Lease), t.newProduct(stocked), 0
	for _, backend := range t.Card.Backends {
		_, err := p.deduct(order(product, "before", t.Timeout))
		must("a sale before the outage", err)
		t.sellDuringOutage(p, backend, product)
		began := time.Now()
		for {
			_, err := p.deduct(order(product, "after", t.Timeout))
			if err == nil {
				break
			}
			if !errors.Is(err, stock.ErrUnavailable) || time.Since(began) > t.Timeout {
				fail("a sale %v after the return of %s: %w", time.Since(began).Round(time.Millisecond), backend, err)
			}
			settle(t.ctx)
		}
		made += 2
	}
	if left := t.remaining(product); left != stocked-made {
		fail("%d of %d pieces were sold, and %d are left", made, stocked, left)
	}
}

func (t *trial) sellDuringOutage(p participant, backend string, product int64) {
	o, ok := t.Outages[backend]
	if !ok {
		fail("lockstest: Config has no Outage for %s, which the card names", backend)
	}
	must("stop "+backend, o.Stop(t.ctx))
	defer func() { must("start "+backend, o.Start(context.WithoutCancel(t.ctx))) }()
	for _, wait := range []time.Duration{0, time.Second} {
		sale := fmt.Sprintf("without %s, a sale with a wait of %v", backend, wait)
		err := p.awaitSoon(sale, p.send(command{Do: doDeduct, Order: order(product, "during", wait)})).err()
		mustBe(sale, err, stock.ErrUnavailable)
		var known *remoteError
		if !errors.As(err, &known) || known.Backend != backend {
			fail("%s names the backend %q: %w", sale, known.Backend, err)
		}
	}
}
