package lockstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/locks"
)

func exclusionAcross(t *trial) { t.contend(t.participants(3, t.Workers.Lease), 3, 10, false) }

func exclusionInside(t *trial) { t.contend(t.participants(1, t.Workers.Lease), 8, 5, false) }

// otherKeys checks that a held key does not block another one.
func otherKeys(t *trial) {
	mine, other, key := t.pair()
	h := mine.acquire("acquire", t.long(key, "holder", 0))
	for _, p := range []participant{mine, other} {
		p.acquire("acquire another key", t.long(t.newKey(), "another", 0)).mustRelease()
	}
	h.mustRelease()
}

// contend lets tasks of all participants increment a counter under the lock. None may be lost.
func (t *trial) contend(all []participant, tasks, rounds int, fenced bool) {
	key := t.newKey()
	dir, err := os.MkdirTemp("", "oversell-lockstest-*")
	must("create a folder", err)
	defer func() { _ = os.RemoveAll(dir) }()
	calls := make([]*call, len(all))
	for i, p := range all {
		r := t.long(key, fmt.Sprintf("contender-%d", i), t.Workers.Lease)
		r.Fenced = fenced
		calls[i] = p.send(command{Do: doContend, Request: r, Tasks: tasks, Rounds: rounds, Dir: dir})
	}
	errs := make([]error, len(all))
	for i, c := range calls { // await every call: a running task would create the files again
		errs[i] = all[i].await(c).err()
	}
	for _, err := range errs {
		must(fmt.Sprintf("%d processes with %d tasks each", len(all), tasks), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, counterFile)) //nolint:gosec // our own folder
	must("read the counter", err)
	if want := strconv.Itoa(len(all) * tasks * rounds); strings.Fields(string(text))[0] != want {
		wrong("lost update: the tasks incremented the counter %s times, and it is %s", want, text)
	}
}

func noExclusionInside(t *trial) {
	p, _, key := t.pair()
	first := p.acquire("acquire", t.long(key, "first", 0))
	second := p.acquire("acquire, although another one holds the key", t.long(key, "second", 0))
	first.mustRelease()
	second.mustRelease()
}

func noExclusionAcross(t *trial) {
	key := t.newKey()
	for n := range 2 {
		p := t.participant(n, t.Workers.Lease)
		h := p.acquire(fmt.Sprintf("process %d, although another one holds the key", n), t.long(key, "owner", 0))
		defer func() { _ = h.release() }()
	}
}

func reEntry(t *trial) {
	mine, other, key := t.pair()
	outer := mine.acquire("acquire", t.long(key, "owner", 0))
	inner := mine.acquire("acquire again for the same owner, with a wait of 0", t.long(key, "owner", 0))
	otherOwners := func(when string) {
		mine.mustNotAcquire(when+", in the same process", key, "another-owner")
		other.mustNotAcquire(when+", in another process", key, "contender")
	}
	otherOwners("after the re-entry")
	t.mustNotGrantToHolder(mine, other, "owner/"+key)
	mine.acquire("acquire a third time for the same owner", t.long(key, "owner", 0)).mustRelease()
	must("the inner release", inner.release())
	otherOwners("after the inner release")
	must("verify the lock after the inner release", outer.verify())
	must("the outer release", outer.release())
	t.mustBeRefused("release the inner lock again", inner.release())
	other.mustFindFreeNow(key, "contender")
}

// mustNotGrantToHolder checks that an owner that holds one key does not get another one that is held.
func (t *trial) mustNotGrantToHolder(mine, other participant, owner string) {
	held := t.newKey()
	h := other.acquire("acquire another key", t.long(held, "another", 0))
	r := t.long(held, "", 0)
	r.Owner = owner
	_, err := mine.tryAcquire(r)
	mustBe("an owner that holds one key, and tries another one that is held", err, locks.ErrNotAcquired)
	h.mustRelease()
}

func noReEntry(t *trial) {
	p, other, key := t.pair()
	h := p.acquire("acquire", t.long(key, "owner", 0))
	p.mustNotAcquire("the owner holds it", key, "owner")
	if t.Card.Scope == api.ScopeShared {
		t.mustNotGrantToHolder(p, other, "owner/"+key)
	}
	h.mustRelease()
}
