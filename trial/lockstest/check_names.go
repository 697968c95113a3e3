package lockstest

import (
	"errors"
	"fmt"
	"strings"

	"oversell/locks"
)

// names checks keys that a lock may confuse: it may ignore the case, a blank at the end, the end of a long name, or
// all letters beyond ASCII. Redis Cluster hashes only the part in braces. A release by a pattern takes longer keys, too.
// A lock may refuse a key with an error. The collation of a table of MySQL may ignore the case and the blank: that is
// no fault of the lock.
func names(t *trial) {
	mine, other, key := t.pair()
	long := strings.Repeat("x", 80)
	for _, end := range [][2]string{{":Case", ":case"}, {":blank", ":blank "}, {long + "1", long + "2"}, {":锁", ":鎖"}, {":{a}1", ":{a}2"}, {":1:2", ":1"}} {
		if (end[0] == ":Case" || end[0] == ":blank") && t.Card.Backends[min(1, len(t.Card.Backends)-1)] == "mysql" {
			continue
		}
		h, err := mine.try(t.long(key+end[0], "holder", t.Timeout))
		if err != nil {
			if errors.Is(err, locks.ErrNotAcquired) {
				fail("the free key %q: %w", key+end[0], err)
			}
			continue
		}
		_, err = other.try(t.long(key+end[0], "contender", 0))
		if err == nil {
			wrong("two requests hold the key %q", key+end[0])
		}
		next, err := other.try(t.long(key+end[1], "another", t.Timeout))
		if errors.Is(err, locks.ErrNotAcquired) {
			wrong("the lock of the key %q blocks the key %q", key+end[0], key+end[1])
		} else if err == nil {
			next.mustRelease()
		}
		h.mustRelease()
	}
	count, times := 1000, 1
	for _, backend := range t.Card.Backends[min(1, len(t.Card.Backends)-1):] {
		if backend == "mysql" || backend == "postgres" {
			count, times = 15, 4 // each may need a connection
		}
	}
	for i := range times {
		mine.holdAll(fmt.Sprintf("%s-%d", key, i), count)
	}
}

// holdAll holds many keys at once. A lock that maps its keys to a few stripes grants only some of them, but a simple
// hash may spread names that count up. A key that was not granted gets a second try, alone: the machine may be busy.
func (p participant) holdAll(key string, count int) {
	calls := make([]*call, count)
	request := func(i int) locks.Request {
		return p.long(fmt.Sprintf("%s-%d", key, i*2654435761%(1<<32)), "holder", p.Timeout)
	}
	for i := range calls {
		calls[i] = p.begin(request(i))
	}
	var held []heldLock
	var late []int
	for i, c := range calls {
		if err := p.await(c).err(); errors.Is(err, locks.ErrNotAcquired) {
			late = append(late, i)
		} else if err == nil {
			held = append(held, heldLock{participant: p, call: c})
		}
	}
	for _, i := range late {
		h, err := p.tryAcquire(request(i))
		if errors.Is(err, locks.ErrNotAcquired) {
			wrong("the free key %q could not be acquired while %d others were held", request(i).Key, len(held))
		}
		held = append(held, h)
	}
	for _, h := range held {
		_ = h.release()
	}
}
