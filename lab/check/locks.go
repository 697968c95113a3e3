package check

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/api"
)

// LockAct is what a request does to a lock.
type LockAct string

// The acts. A lease that may have ended is an act too: see Expire.
const (
	Enter  LockAct = "enter"  // the request was granted the lock, or some of its permits
	Leave  LockAct = "leave"  // it released what it entered last
	Expire LockAct = "expire" // from Call on, the lease of all that the owner holds may end, or never
)

// Open is the Return of an act that may take effect at any time after its Call, or never.
const Open time.Duration = math.MaxInt64

// LockOp is one act of one owner. Call and Return are durations since the start of the recording.
type LockOp struct {
	Act          LockAct
	Owner        string
	Permits      int   // that it takes or frees
	Fence        int64 // of the grant; 0 without one
	Call, Return time.Duration
}

// LockModel is what a lock promises: a mutex has one permit, a semaphore n. A read-write lock has AllPermits: a reader
// takes one, and a writer takes all. A latch has AllPermits, too: it takes one for each count, and a request that awaits it
// takes all, and frees them at once.
type LockModel struct {
	Permits   int
	Reentrant bool // an owner may enter again: what it holds does not keep it out
	Fenced    bool // each grant has a higher fence than the grants before
}

// AllPermits is the number of permits of a read-write lock.
const AllPermits = 1 << 20

// LockHistory reports whether a lock that does one act at a time could have granted all that was granted
// (Herlihy and Wing, 1990).
type LockHistory struct {
	Grants  int // number of grants that were judged; 0 means that the verdict proves nothing
	Op      int // index of the first act that fits no order, or -1
	Verdict api.Verdict
	Why     api.Text
}

// Check judges a history. An Enter with an unknown outcome needs no LockOp: it may never have taken effect. The history is
// cut wherever nothing is held and no act is open, because the search takes exponential time.
func (m LockModel) Check(ops []LockOp) LockHistory {
	c := LockHistory{Op: none, Verdict: api.Holds, Why: api.Text{EN: "There was no grant to judge.", ZH: "没有可供判定的加锁。"}}
	order := make([]int, len(ops))
	for i, op := range ops {
		order[i] = i
		if op.Act == Enter {
			c.Grants++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ops[a].Call, ops[b].Call) })
	floor := int64(0)
	for _, part := range quietParts(ops, order) {
		slices.SortStableFunc(part, func(a, b int) int { return cmp.Compare(ops[a].Return, ops[b].Return) })
		until := func(i int) api.Verdict {
			return explains(knownActs(ops, part, ops[part[i]].Return), lockState{top: floor}, m.after, lockState.equal)
		}
		switch v := until(len(part) - 1); v {
		case api.Broken:
			// If the acts up to a time fit no order, the acts up to a later time fit none. So bisect.
			c.Op, c.Verdict = part[sort.Search(len(part)-1, func(i int) bool { return until(i) == api.Broken })], v
			c.Why = m.whyNot(ops[c.Op])
			return c
		case api.Inconclusive:
			c.Verdict = v
			c.Why = api.Textf("The search for an order of %d acts took too long.", "寻找 %d 个动作的顺序，用时过长。", len(part))
		}
		for _, i := range part {
			floor = max(floor, ops[i].Fence)
		}
	}
	if c.Grants > 0 && c.Verdict == api.Holds {
		c.Why = api.Textf("One order of all grants and releases explains %d grants.", "有一种加锁与释放的顺序能解释全部 %d 次加锁。", c.Grants)
	}
	return c
}

func (m LockModel) whyNot(op LockOp) api.Text {
	if m.Fenced && op.Fence > 0 {
		return api.Textf("The grant to %s at %v, with fence %d, fits no order: the lock was held by others, or had granted a higher fence.",
			"%s 在 %v 以栅栏号 %d 拿到锁，没有一种顺序能解释：锁正被他人持有，或已发出更大的栅栏号。", op.Owner, brief(op.Return), op.Fence)
	}
	return api.Textf("The grant to %s at %v fits no order: others held the lock, and had neither released it nor lost its lease.",
		"%s 在 %v 拿到锁，没有一种顺序能解释：锁正被他人持有，既没有释放，租期也没有结束。", op.Owner, brief(op.Return))
}

// quietParts cuts the acts, in the order of their calls, wherever all earlier acts have returned and nothing is held.
func quietParts(ops []LockOp, order []int) (parts [][]int) {
	begin, held, latest := 0, 0, time.Duration(-1)
	for n, i := range order {
		if n > begin && held == 0 && latest < ops[i].Call {
			parts, begin = append(parts, order[begin:n]), n
		}
		switch ops[i].Act {
		case Enter:
			held++
		case Leave:
			held--
		}
		latest = max(latest, ops[i].Return)
	}
	if begin < len(order) {
		parts = append(parts, order[begin:])
	}
	return parts
}

// knownActs returns the acts that are known at a time. An Enter that has not returned then may never take effect, and any
// other act is open.
func knownActs(ops []LockOp, part []int, at time.Duration) (known []porcupine.Operation) {
	for n, i := range part {
		op := ops[i]
		if op.Call > at || op.Act == Enter && op.Return > at {
			continue
		}
		if op.Return > at {
			op.Return = Open
		}
		known = append(known, porcupine.Operation{ClientId: n, Input: op, Call: int64(op.Call), Return: int64(op.Return)})
	}
	return known
}

// holding is what one Enter took.
type holding struct {
	owner   string
	permits int
}

// lockState must not be changed: the search keeps old states.
type lockState struct {
	held []holding // sorted
	top  int64     // the highest fence so far
}

func (s lockState) equal(other lockState) bool {
	return s.top == other.top && slices.Equal(s.held, other.held)
}

// after returns the state after the act, or false if the lock must not have done it. A Leave of nothing is possible: the
// lease had ended, which the holder may not know.
func (m LockModel) after(s lockState, op LockOp) (lockState, bool) {
	mine := holding{op.Owner, op.Permits}
	switch op.Act {
	case Enter:
		again := m.Reentrant && slices.ContainsFunc(s.held, func(h holding) bool { return h.owner == op.Owner })
		if m.freeFor(s, op.Owner) < op.Permits || m.Fenced && op.Fence <= s.top && !again {
			return s, false
		}
		held := append(slices.Clone(s.held), mine)
		slices.SortFunc(held, func(a, b holding) int {
			return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.permits, b.permits))
		})
		return lockState{held, max(s.top, op.Fence)}, true
	case Leave:
		if i := slices.Index(s.held, mine); i >= 0 {
			return lockState{slices.Delete(slices.Clone(s.held), i, i+1), s.top}, true
		}
		return s, true
	default:
		kept := slices.DeleteFunc(slices.Clone(s.held), func(h holding) bool { return h.owner == op.Owner })
		return lockState{kept, s.top}, true
	}
}

// freeFor returns the permits that an owner can get.
func (m LockModel) freeFor(s lockState, owner string) int {
	free := m.Permits
	for _, h := range s.held {
		if h.owner != owner || !m.Reentrant {
			free -= h.permits
		}
	}
	return free
}
