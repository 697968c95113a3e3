package chaos

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"oversell/api"
)

// Lock is what a draw must know about a lock.
type Lock struct {
	Name    string     // with the seed, it decides the draws: so a new lock does not change those of other locks
	Begins  Verb       // what a client does first: Sells, Locks or Awaits
	Steps   []api.Step // the steps at which its requests can stop, in their order
	Faults  []Verb     // the faults that apply to the lock
	Servers int        // the number of its servers
	Locker  bool       // a request may acquire it twice
	Nests   bool       // the lock promises that a request may acquire it twice
	Expires bool       // its lease ends although its holder lives
	Fenced  bool       // the row checks a fencing token, so its statements matter more
	Leases  bool       // a request of Locks may ask for a lease
}

// end returns the move by which a client ends its request: Resumes, Unlocks or Counts.
func (l Lock) end() Verb {
	return map[Verb]Verb{Sells: Resumes, Locks: Unlocks, Awaits: Counts}[l.Begins]
}

// drawing is a plan while it is drawn. It guesses the state of the requests and the lock, so that few moves are in
// vain. A wrong guess does no harm: a move that is impossible is skipped.
type drawing struct {
	Lock
	*rand.Rand
	plan     Plan
	weights  map[Verb]int // of the verbs that this plan uses
	used     map[Verb]int
	requests [Clients]request
	holder   int   // or nobody
	queue    []int // clients that wait for the lock
	lasting  map[Move]bool
}

const nobody = -1

// request is the guess about a client's request.
type request struct {
	running bool
	at      int // the number of the step in Steps at which it stops; len(Steps) means nowhere
	stopped bool
}

// Draw returns the plan of a seed. The same seed and lock give the same plan.
func Draw(seed int64, lock Lock) Plan {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(lock.Name))
	d := &drawing{
		Lock: lock, Rand: rand.New(rand.NewPCG(uint64(seed), hash.Sum64())), //nolint:gosec // not a secret
		lasting: map[Move]bool{}, used: map[Verb]int{}, holder: nobody,
	}
	if d.Begins != Awaits && d.IntN(3) > 0 {
		d.overlap()
		return d.plan
	}
	d.weigh()
	for length := 5 + d.IntN(7); len(d.plan) < length; {
		m := d.next()
		d.plan, d.used[m.Do] = append(d.plan, m), d.used[m.Do]+1
		d.guess(m)
	}
	return d.plan
}

// overlap draws requests that overlap. Each is delayed in a way of its own, and a lease may pass. The delays end in the
// same order or in another, before or after the next request begins, some of them by the death of the process: most races
// between two commands have this form.
func (d *drawing) overlap() {
	ways := []Verb{d.Begins, d.Begins, d.Begins} // the request stops at a step, or is not delayed
	others := []Verb{Holds, Holds, HoldsRow}
	if d.Fenced {
		others = []Verb{Holds, HoldsRow, HoldsRow, HoldsRow}
	}
	for _, v := range others {
		if slices.Contains(d.Faults, v) {
			ways = append(ways, v)
		}
	}
	servers := slices.DeleteFunc(slices.Clone(d.Faults), func(v Verb) bool { return !v.OnServer() })
	var ends Plan
	ended := false // the lease of a holder
	for client := range 2 + min(1, d.IntN(3)) {
		sale := d.detailed(Move{Do: d.Begins, Client: client})
		switch way := ways[d.IntN(len(ways))]; {
		case d.Fenced && client == 0 && d.IntN(2) == 0: // only a write after the end of its lease meets the fence
			sale.At = api.Writing
		case ended && d.IntN(2) == 0: // the next holder sells before the first one goes on
			sale.At = ""
		case way != d.Begins:
			sale.At = ""
			d.plan = append(d.plan, d.detailed(Move{Do: way, Client: client}))
			ends = append(ends, Move{Do: Heals, Of: way, Client: client})
		}
		if sale.At != "" || d.Begins != Sells {
			ends = append(ends, Move{Do: d.end(), Client: client})
		}
		if last := len(ends) - 1; last >= 0 && slices.Contains(d.Faults, Dies) && d.IntN(6) == 0 {
			ends[last] = Move{Do: Dies, Client: client}
		}
		d.plan = append(d.plan, sale)
		if ended = d.IntN(2+client) == 0 || d.Fenced && client == 0; ended { // most often, the first lease ends
			ends = append(d.leaseEnds(client), ends...)
		}
		if len(servers) > 0 && !d.isStruck() && d.IntN(8) == 0 {
			d.plan = append(d.plan, d.detailed(Move{Do: servers[d.IntN(len(servers))]}))
			servers = nil
		}
		if client == 0 && d.IntN(5) == 0 { // another request in the same process
			if d.plan = append(d.plan, d.detailed(Move{Do: d.Begins, Client: guest})); d.Begins != Sells {
				ends = append(ends, Move{Do: d.end(), Client: guest})
			}
		}
		if len(ends) > 0 && d.IntN(3) == 0 { // before the next request begins
			i := d.IntN(len(ends))
			d.plan, ends = append(d.plan, ends[i]), slices.Delete(ends, i, i+1)
		}
	}
	if d.IntN(2) == 0 {
		d.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	}
	d.plan = append(d.plan, ends...)
}

// leaseEnds adds moves by which a lease ends. If the lease is renewed, the process of its client may be frozen or cut off
// first. It returns the moves that end this fault. Only links without another fault can be cut.
func (d *drawing) leaseEnds(client int) (ends Plan) {
	held := d.plan.Has(Holds, HoldsRow)
	ways := slices.DeleteFunc([]Verb{Freezes, Cut}, func(v Verb) bool { return !slices.Contains(d.Faults, v) || v == Cut && held })
	if !d.Expires && len(ways) > 0 && !d.isStruck() && d.IntN(3) > 0 {
		way := ways[d.IntN(len(ways))]
		d.plan, ends = append(d.plan, Move{Do: way, Client: client}), Plan{{Do: Heals, Of: way, Client: client}}
	}
	d.plan = append(d.plan, Move{Do: Passes})
	return ends
}

// isStruck reports whether the plan has a fault that ends a lease. One is enough, so that it does not hide another.
func (d *drawing) isStruck() bool {
	return slices.ContainsFunc(d.plan, func(m Move) bool { return m.Do.OnServer() || m.Do == Freezes || m.Do == Cut })
}

// weigh draws the weight of each move, and the kinds of faults of the plan: none, one or two.
func (d *drawing) weigh() {
	d.weights = map[Verb]int{d.Begins: 4 + d.IntN(4), d.end(): 2 + d.IntN(5), Passes: d.IntN(6), Cancels: max(0, d.IntN(4)-2), Heals: 1 + d.IntN(3)}
	kinds := slices.Clone(d.Faults)
	d.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, v := range kinds[:min(len(kinds), []int{0, 1, 1, 1, 2, 2}[d.IntN(6)])] {
		d.weights[v] = 3 + d.IntN(5)
	}
}

// often is a number of uses of a move that no plan reaches.
const often = 100

// idleEnds returns how often a plan may end a request of a client that has none: it holds nothing to unlock, but it may count
// a latch down.
func (d *drawing) idleEnds() int {
	switch d.Begins {
	case Sells:
		return 0
	case Awaits:
		return often
	}
	return 1
}

// next draws one of the moves that can have an effect now, according to the guessed state.
func (d *drawing) next() Move {
	var possible []Move
	consider := func(m Move, most int) {
		if m.Client == guest && slices.Contains(Faults(), m.Do) {
			return
		}
		if d.used[m.Do] < most && !d.lasting[Move{Do: Heals, Of: m.Do, Client: m.Client}] {
			for range d.weights[m.Do] {
				possible = append(possible, m)
			}
		}
	}
	const twice = 2
	for client, r := range d.requests {
		process := Replica(client)
		gone := d.lasting[Move{Do: Heals, Of: Freezes, Client: process}] || d.lasting[Move{Do: Heals, Of: Dies, Client: process}]
		switch {
		case gone:
		case !r.running:
			consider(Move{Do: d.Begins, Client: client}, often)
			consider(Move{Do: d.end(), Client: client}, d.idleEnds())
			for _, v := range []Verb{Holds, HoldsRow, Loses} { // its next request is struck
				consider(Move{Do: v, Client: client}, twice)
			}
		default:
			if r.stopped {
				consider(Move{Do: d.end(), Client: client}, often)
			}
			consider(Move{Do: Cancels, Client: client}, twice)
			for _, v := range Faults() {
				if !v.OnServer() {
					consider(Move{Do: v, Client: client}, twice)
				}
			}
		}
	}
	if d.Begins == Awaits || d.holder != nobody || len(d.queue) > 0 {
		for _, v := range []Verb{Passes, Deletes, Crashes, Restarts, Stalls, Jumps, FailsOver} {
			consider(Move{Do: v}, twice)
		}
	}
	if d.holder != nobody && d.used[Passes] == 0 && (d.Expires || len(d.lasting) > 0) { // many faults show only later
		for range 3 {
			consider(Move{Do: Passes}, twice)
		}
	}
	for _, v := range Faults() { // in a fixed order
		for client := range Clients {
			if m := (Move{Do: Heals, Of: v, Client: client}); d.lasting[m] {
				consider(m, often)
			}
		}
	}
	if len(possible) == 0 { // all processes are gone
		return Move{Do: Passes}
	}
	return d.detailed(possible[d.IntN(len(possible))])
}

func (d *drawing) detailed(m Move) Move {
	switch m.Do {
	case Sells:
		if d.IntN(4) > 0 && m.Client != guest {
			m.At = d.Steps[d.IntN(len(d.Steps))]
		}
		one := 12 // one sale in this number acquires the lock twice
		if d.Nests {
			one = 4
		}
		m.Try, m.Nested = d.IntN(6) == 0, d.Locker && d.IntN(one) == 0
	case Resumes:
		if later := d.Steps[d.requests[m.Client].at+1:]; len(later) > 0 && d.IntN(2) == 0 {
			m.At = later[d.IntN(len(later))]
		}
	case Awaits:
		m.Try = d.IntN(6) == 0
	case Locks:
		m.Try, m.Many, m.Leased = d.IntN(6) == 0, d.IntN(2) == 0, d.Leases && d.IntN(3) == 0
	case Holds, Loses:
		m.Nth = 1 + d.IntN(4)
	case HoldsRow: // of a sale's few statements
		m.Nth = 1 + d.IntN(3)
	case Crashes, Restarts, Stalls, Jumps:
		m.Nth = 1 + d.IntN(1+d.IntN(max(1, d.Servers))) // the first ones more often: a wrong lock may use no others
	}
	return m
}

// guess follows the effect of a move on the requests, the lock and the faults.
func (d *drawing) guess(m Move) {
	r := &d.requests[m.Client]
	switch m.Do {
	case Sells, Resumes, Locks, Unlocks:
		*r = request{running: true, at: len(d.Steps)}
		if m.At != "" {
			r.at = slices.Index(d.Steps, m.At)
		}
		if m.Do == Locks { // it holds the lock until it unlocks
			r.at = 0
		}
		if m.Do == d.Begins {
			d.queue = append(d.queue, m.Client)
		} else {
			d.goesOn(m.Client)
		}
	case Awaits:
		r.running = !m.Try
	case Counts: // which may open the latch
		for i := range d.requests {
			d.requests[i].running = d.requests[i].running && d.used[Counts]%2 > 0
		}
	case Dies, Cancels:
		d.queue = slices.DeleteFunc(d.queue, func(c int) bool { return c == m.Client })
		if r.running = m.Do == Cancels && r.stopped; m.Do == Dies && m.Client == Replica(guest) {
			d.requests[guest].running = false
		}
	case Passes, Deletes, Crashes, Restarts, Jumps, FailsOver:
		if m.Do != Passes || d.Expires || len(d.lasting) > 0 {
			d.holder = nobody
		}
	case Heals:
		m.Nth = 0
		delete(d.lasting, m)
	}
	if m.Do.Lasts() {
		d.lasting[Move{Do: Heals, Of: m.Do, Client: m.Client}] = true
	}
	for d.holder == nobody && len(d.queue) > 0 {
		d.holder, d.queue = d.queue[0], d.queue[1:]
		d.goesOn(d.holder)
	}
}

// goesOn lets a request stop at its step, or end.
func (d *drawing) goesOn(client int) {
	r := &d.requests[client]
	if r.stopped = r.at < len(d.Steps); r.stopped {
		return
	}
	r.running = false
	if d.holder == client {
		d.holder = nobody
	}
}
