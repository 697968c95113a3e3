package lockstest

import (
	"cmp"
	"fmt"

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
	if outcomes[sold] > stocked-left {
		wrong("%d sold, and %d taken from stock", outcomes[sold], stocked-left)
	}
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
		wrong("%d of %d pieces are left, and none was sold", left, stocked)
	}
	_, err = all[1].deduct(order(product, "next", t.Timeout))
	must("a sale after the rejected ones", err)
}
