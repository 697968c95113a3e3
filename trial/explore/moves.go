package explore

import "slices"

// move is one choice of a schedule.
type move struct {
	identity
	server  string // that has a part in it, or empty
	nth     int    // among the messages or sessions of the client that can be chosen now, from 0
	what    string // the message, for people
	perform func()
	effect  effect // once it has been performed
}

// identity is the same for the same move after other moves, and in each repetition of a schedule. Two moves
// that differ only in the server have the same identity.
type identity struct {
	kind   Kind
	client int // whose message or session it is, or noClient
	// A message is the nth of the client with this name that the same lines of code have sent to the server.
	// A session has only a number.
	name, path string
	n          int
}

const noClient = -1

// same reports whether two moves in two repetitions of a schedule are the same.
func (m move) same(other move) bool { return m.identity == other.identity && m.server == other.server }

// ofClient reports whether the order of a move, and of moves of other clients alone, has no effect.
func (m move) ofClient() bool {
	return slices.Contains([]Kind{Crash, Pause, Hold, Lose, Resume}, m.kind)
}

func clientMove(kind Kind, client int) move {
	return move{identity: identity{kind: kind, client: client}}
}

// move returns a move that delivers a message, which is the nth that can be delivered now.
func (m *message) move(kind Kind, nth int) move {
	return move{identity: identity{kind, m.client, m.name, m.path, m.n}, server: m.server, nth: nth, what: m.name}
}

// moves lists what can happen next. There is none if all clients have ended, and all messages have
// arrived.
func (x *schedule) moves() (moves []move) {
	running, mayWait := 0, true
	quiet := true // no client that runs has sent anything
	for i, c := range x.clients {
		if c.crashed {
			continue
		}
		if !c.done { // otherwise, its release may go on in the background
			running++
		}
		if c.sale != nil {
			quiet = false
			moves = append(moves, x.possible(clientMove(Begin, i), func() { x.wake(i); x.begin(c) }))
			continue
		}
		if c.paused {
			mayWait = mayWait && c.frozen < longestPause
			continue
		}
		for k, m := range x.from(i) {
			quiet = false
			moves = append(moves, x.possible(m.move(Deliver, k), func() { x.deliverNow(m) }))
		}
	}
	if running == 0 {
		return moves
	}
	if quiet && mayWait {
		passes := clientMove(Time, noClient)
		passes.perform = x.passTime
		moves = append(moves, passes)
	}
	for i, c := range x.clients {
		if c.paused && c.mayResume && !c.crashed {
			moves = append(moves, x.possible(clientMove(Resume, i), func() { x.resume(i) }))
		}
	}
	return append(moves, x.faults()...)
}

// possible returns a move that changes the world.
func (x *schedule) possible(m move, perform func()) move {
	m.perform = func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		perform()
	}
	return m
}

func (x *schedule) faults() (moves []move) {
	add := func(left *int, m move, perform func()) {
		if *left == 0 {
			return
		}
		moves = append(moves, x.possible(m, func() {
			*left--
			x.touch(string(m.kind), true)
			perform()
		}))
	}
	for i, c := range x.clients {
		if c.done || c.crashed || c.sale != nil {
			continue
		}
		add(&x.left.Crashes, clientMove(Crash, i), func() { x.crash(i) })
		if c.paused {
			continue
		}
		sent := x.from(i)
		if len(sent) > 0 {
			add(&x.left.Pauses, clientMove(Pause, i), func() { x.pause(i) })
		}
		for k, m := range sent {
			add(&x.left.Pauses, m.move(Hold, k), func() { x.pause(i); x.deliverNow(m) })
			add(&x.left.LostReplies, m.move(Lose, k), func() { m.lose(); x.deliverNow(m) })
		}
	}
	x.addExpiries(add)
	for _, s := range x.redis {
		if slices.ContainsFunc(x.links, func(l *link) bool { return l.peer == s }) {
			m := clientMove(Failover, noClient)
			m.server = s.name
			add(&x.left.Failovers, m, func() { x.replace(s) })
		}
	}
	return moves
}

// expiry returns the end of a session of ZooKeeper before its time.
func expiry(client int, perform func()) move {
	m := clientMove(Expire, client)
	m.server, m.perform = "zookeeper", perform
	return m
}

func (x *schedule) addExpiries(add func(left *int, m move, perform func())) {
	expired := map[int]int{} // number of expiries by client
	for _, m := range x.zk.expiries() {
		left := &x.left.Expiries
		if x.clients[m.client].crashed { // the server ends it in any case, and at any time
			once := 1
			left = &once
		}
		m.n, m.nth = expired[m.client], expired[m.client]
		expired[m.client]++
		add(left, m, m.perform)
	}
}

// replace breaks all connections with a server, and deletes its data.
func (x *schedule) replace(s *server) {
	x.touch(s.name, true)
	x.touch(s.name+" connections", true)
	s.mini.FlushAll()
	x.breakLinks(func(l *link) bool { return l.peer == s })
}
