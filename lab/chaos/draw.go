package chaos

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"oversell/api"
)

// Lock is what a draw must know about a lock.
type Lock struct {
	Name    string     // draws of other locks do not depend on this one's
	Steps   []api.Step // at which its requests can stop
	Faults  []Verb     // that apply to it
	Servers int        // of its lock
	Locker  bool
}

// drawing is a plan while it is drawn. It follows the state of clients and faults as far as the moves tell.
type drawing struct {
	Lock
	*rand.Rand
	plan    Plan
	weights map[Verb]int // of the verbs that this plan uses
	begun   [Clients]bool
	lasting map[Move]bool // the moves that heal what lasts
}

// Draw returns the plan of a seed. The same seed and lock give the same plan.
func Draw(seed int64, lock Lock) Plan {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(lock.Name))
	d := &drawing{
		Lock: lock, Rand: rand.New(rand.NewPCG(uint64(seed), hash.Sum64())), //nolint:gosec // not a secret
		lasting: map[Move]bool{},
	}
	d.weigh()
	for length := 4 + d.IntN(8); len(d.plan) < length; {
		d.add(d.next())
	}
	return d.plan
}

// weigh draws how often each move comes, and which faults: none, one or two kinds.
func (d *drawing) weigh() {
	d.weights = map[Verb]int{Sells: 4 + d.IntN(4), Resumes: 2 + d.IntN(5), Passes: d.IntN(3), Cancels: max(0, d.IntN(4)-2), Heals: 1 + d.IntN(3)}
	kinds := slices.Clone(d.Faults)
	d.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, v := range kinds[:min(len(kinds), []int{0, 1, 1, 1, 2, 2}[d.IntN(6)])] {
		d.weights[v] = 2 + d.IntN(4)
	}
}

// next draws one of the moves that are possible now.
func (d *drawing) next() Move {
	var possible []Move
	for client := range Clients {
		if !d.begun[client] {
			possible = d.consider(possible, Move{Do: Sells, Client: client})
			continue
		}
		for _, v := range append([]Verb{Resumes, Cancels}, Faults()...) {
			if !v.OnServer() {
				possible = d.consider(possible, Move{Do: v, Client: client})
			}
		}
	}
	for _, v := range []Verb{Passes, Deletes, Crashes, Restarts, Jumps} {
		if len(d.plan) > 0 {
			possible = d.consider(possible, Move{Do: v})
		}
	}
	// A command is held back, or its answer lost, before it is sent: also for a client that begins next.
	for client := range Clients {
		for _, v := range []Verb{Holds, Loses} {
			if !d.begun[client] {
				possible = d.consider(possible, Move{Do: v, Client: client})
			}
		}
	}
	for _, m := range d.heals() {
		possible = d.consider(possible, m)
	}
	return d.detailed(possible[d.IntN(len(possible))])
}

// heals returns the moves that heal what lasts, in a fixed order.
func (d *drawing) heals() (all []Move) {
	for _, v := range Faults() {
		for client := range Clients {
			if m := (Move{Do: Heals, Of: v, Client: client}); d.lasting[m] {
				all = append(all, m)
			}
		}
	}
	return all
}

// consider appends a move as often as its verb weighs, unless its fault lasts already.
func (d *drawing) consider(possible []Move, m Move) []Move {
	if d.lasting[Move{Do: Heals, Of: m.Do, Client: m.Client}] {
		return possible
	}
	for range d.weights[m.Do] {
		possible = append(possible, m)
	}
	return possible
}

func (d *drawing) detailed(m Move) Move {
	switch m.Do {
	case Sells:
		if d.IntN(4) > 0 {
			m.At = d.Steps[d.IntN(len(d.Steps))]
		}
		m.Try, m.Nested = d.IntN(6) == 0, d.Locker && d.IntN(12) == 0
	case Resumes:
		if d.IntN(2) == 0 {
			m.At = d.Steps[d.IntN(len(d.Steps))]
		}
	case Holds, Loses:
		m.Nth = 1 + d.IntN(3)
	case Crashes, Restarts, Jumps:
		m.Nth = 1 + d.IntN(max(1, d.Servers))
	}
	return m
}

func (d *drawing) add(m Move) {
	d.plan = append(d.plan, m)
	switch {
	case m.Do == Sells:
		d.begun[m.Client] = true
	case m.Do == Resumes && m.At == "", m.Do == Dies, m.Do == Cancels:
		d.begun[m.Client] = false // as far as the plan tells: it may still wait for the lock
	case m.Do == Heals:
		m.Nth = 0
		delete(d.lasting, m)
	}
	if m.Do.Lasts() {
		d.lasting[Move{Do: Heals, Of: m.Do, Client: m.Client}] = true
	}
}
