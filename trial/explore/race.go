package explore

import "slices"

// order finds out which earlier steps must come before a step, since it depends on them. If the two could
// also happen in the other order, the search must try that, too.
func (b *branch) order(step int) {
	n := b.path[step]
	if b.full || n.before != nil {
		return
	}
	n.before = make([]bool, step)
	for i := step - 1; i >= 0; i-- {
		if n.before[i] { // since it must come before another one of these steps
			continue
		}
		earlier := b.path[i]
		enables := b.enables(i, n.move())
		if !enables && earlier.move().effect.independent(n.move().effect) {
			continue
		}
		if !enables && !n.move().effect.all && i >= b.fixed && b.limit == 0 && !b.tooEarly(i, step) {
			b.race(i, step)
		}
		n.before[i] = true
		for k, is := range earlier.before {
			n.before[k] = n.before[k] || is
		}
	}
}

// enables reports whether a move became possible with the step at depth i.
func (b *branch) enables(i int, m move) bool {
	return !slices.ContainsFunc(b.path[i].moves, m.same) && slices.ContainsFunc(b.path[i+1].moves, m.same)
}

// race makes sure that the search also tries, in place of the step at depth i, a later one that depends
// on it, after those that must come before the later one (source sets: Abdulla, Aronsson, Jonsson and
// Sagonas, "Optimal Dynamic Partial Order Reduction", POPL 2014).
func (b *branch) race(i, step int) {
	n, first := b.path[i], -1
	var rest []int // the steps from i on that need not come after it
	for k := i + 1; k <= step; k++ {
		late := b.path[k]
		if k < step && late.before[i] {
			continue
		}
		waits := slices.ContainsFunc(rest, func(earlier int) bool { return late.before[earlier] })
		rest = append(rest, k)
		at := slices.IndexFunc(n.moves, late.move().same)
		if waits || at < 0 {
			continue
		}
		if n.todo[at] || n.sleeps(at) || slices.ContainsFunc(n.twinsOf(at), func(twin int) bool { return n.todo[twin] }) {
			return
		}
		first = at
	}
	if first < 0 {
		n.plan(true)
		return
	}
	n.todo[first] = true
}

// tooEarly reports whether a step cannot come before the one at depth i, whose answer is one of several
// that its client counts: without this answer, there are as many of each kind as there were before the
// client went on.
func (b *branch) tooEarly(i, step int) bool {
	last := step - 1 // the step that has completed the count
	for last > i && !b.enables(last, b.path[step].move()) {
		last--
	}
	if last == i || !b.counted(i, last) {
		return false
	}
	var tooFew, without []string
	for k := range step {
		if k != i && b.counted(k, last) && (k < i || !b.path[k].before[i]) {
			without = append(without, b.path[k].move().answer())
		}
	}
	slices.Sort(without)
	for k := range last {
		if b.counted(k, last) {
			tooFew = append(tooFew, b.path[k].move().answer())
			slices.Sort(tooFew)
			if slices.Equal(tooFew, without) {
				return true
			}
		}
	}
	return false
}

// counted reports whether the client counts the answer of a step together with that of the last one: it
// sent both messages before.
func (b *branch) counted(k, last int) bool {
	end := b.path[last].move()
	return k == last || end.effect.parallel(b.path[k].move().effect) && slices.ContainsFunc(b.path[min(k, last)].moves, end.same)
}

// answer is what the client gets, or does not get because of a fault.
func (m move) answer() string { return string(m.kind) + m.effect.answer }

// mayHaveTwoHolders reports whether two clients hold the lock at the same time in this schedule, or in one
// that differs only in the order of independent moves.
func (b *branch) mayHaveTwoHolders() bool {
	if b.full {
		return false
	}
	type span struct{ from, to int } // steps; to is the length of the path if the client holds it until the end
	spans := map[int][]*span{}
	for i, n := range b.path {
		for _, h := range n.move().effect.holds {
			s := spans[h.client]
			if h.begins || len(s) == 0 { // without a lock, a client begins before its first message
				spans[h.client] = append(s, &span{i, len(b.path)})
			}
			if s = spans[h.client]; !h.begins {
				s[len(s)-1].to = i
			}
		}
	}
	after := func(a, b2 *span) bool { return b2.to < len(b.path) && b2.to < a.from && b.path[a.from].before[b2.to] }
	for one, mine := range spans {
		for other, theirs := range spans {
			for _, m := range mine {
				for _, t := range theirs {
					if one < other && !after(m, t) && !after(t, m) {
						return true
					}
				}
			}
		}
	}
	return false
}
