package lockstest

import (
	"fmt"

	"oversell/api"
)

// inOrder queues waiters one after the other, and checks that they get the lock in the same order.
func inOrder(t *trial) {
	const waiters = 30
	all, key := t.participants(3, t.Workers.Lease), t.newKey()
	// Waiters 0 to 2 are in one process, waiters 3 to 5 in the next process, and so on.
	of := func(i int) participant { return all[i/3%3] }
	h := all[0].acquire("acquire", t.long(key, "holder", 0))
	calls := make([]*call, waiters)
	for i := range calls {
		r := t.long(key, fmt.Sprintf("waiter-%d", i), t.Workers.Lease)
		calls[i] = of(i).send(command{Do: doAcquire, Request: r, Step: api.Queued})
		must(fmt.Sprintf("waiter %d must queue (answer queued) while the lock is held", i), calls[i].reached(t.ctx))
	}
	for i, c := range calls {
		for later, other := range calls[i+1:] {
			select {
			case r := <-other.answer:
				fail("waiter %d was answered before waiter %d: %w", i+1+later, i, orNone(r.err()))
			default:
			}
		}
		h.mustRelease()
		if i%5 == 0 && i+1 < waiters {
			of(i).mustNotAcquire("although others wait", key, fmt.Sprintf("newcomer-%d", i))
		}
		waiter := fmt.Sprintf("waiter %d of %d, which is next", i+1, waiters)
		must(waiter, of(i).awaitSoon(waiter, c).err())
		h = heldLock{participant: of(i), call: c}
	}
	h.mustRelease()
}
