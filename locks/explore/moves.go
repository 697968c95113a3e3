package explore

import (
	"fmt"
	"slices"
	"strings"
)

// move is one choice of a schedule.
type move struct {
	token   string // for a trail, such as A, lose-B.2 or time
	id      string // names the same message before and after other moves
	text    string
	sender  string // the client whose message it delivers; empty for other moves
	to      string // the server, if one has a part in it
	perform func()
	effect  effect // once it has been performed
}

// same reports whether two moves in two repetitions of a schedule are the same.
func (m move) same(other move) bool {
	return m.id == other.id && (m.id != "" || m.token == other.token)
}

func (m move) step() Step {
	return Step{Token: m.token, Text: m.text, Client: m.client(), Server: m.to}
}

// client returns the client of a move by its token, such as A.2 or lose-B. It is empty for time and
// for a fail-over.
func (m move) client() string {
	name, _, _ := strings.Cut(m.token[strings.LastIndex(m.token, "-")+1:], ".")
	if len(name) == 1 && name >= letter(0) && name <= letter(maxClients-1) {
		return name
	}
	return ""
}

// ofClient reports whether the order of a move, and of moves of other clients alone, has no effect.
func (m move) ofClient() bool {
	kind, _, _ := strings.Cut(m.token, "-")
	return slices.Contains([]string{"crash", "pause", "hold", "lose", "resume"}, kind)
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
			moves = append(moves, move{token: "begin-" + letter(i), text: letter(i) + " begins its sale.", perform: x.locked(func() {
				x.wake(i)
				x.begin(c)
			})})
			continue
		}
		if c.paused {
			mayWait = mayWait && c.frozen < longestPause
			continue
		}
		for k, m := range x.from(i) {
			quiet = false
			moves = append(moves, x.deliver(m, k))
		}
	}
	if running == 0 {
		return moves
	}
	if quiet && mayWait {
		moves = append(moves, move{token: "time", text: "Time passes.", perform: x.passTime})
	}
	for i, c := range x.clients {
		if c.paused && c.mayResume && !c.crashed {
			moves = append(moves, move{
				token: "resume-" + letter(i), text: letter(i) + " goes on.",
				perform: x.locked(func() { x.resume(i) }),
			})
		}
	}
	return append(moves, x.faults()...)
}

func (x *schedule) locked(do func()) func() {
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		do()
	}
}

func token(m *message, k int) string {
	if k == 0 {
		return letter(m.client)
	}
	return fmt.Sprintf("%s.%d", letter(m.client), k+1)
}

func (x *schedule) deliver(m *message, k int) move {
	return move{
		token: token(m, k), id: m.id(), sender: letter(m.client), to: m.server,
		text:    fmt.Sprintf("%s: %s on %s.", letter(m.client), m.name, m.server),
		perform: x.locked(func() { x.deliverNow(m) }),
	}
}

func (x *schedule) faults() (moves []move) {
	add := func(left *int, m move, do func()) {
		if *left == 0 {
			return
		}
		m.perform = x.locked(func() {
			*left--
			kind, _, _ := strings.Cut(m.token, "-")
			x.touch(kind, true)
			do()
		})
		moves = append(moves, m)
	}
	for i, c := range x.clients {
		if c.done || c.crashed || c.sale != nil {
			continue
		}
		add(&x.left.Crashes, move{token: "crash-" + letter(i), text: letter(i) + " crashes."}, func() { x.crash(i) })
		if c.paused {
			continue
		}
		sent := x.from(i)
		if len(sent) > 0 {
			add(&x.left.Pauses, move{token: "pause-" + letter(i), text: letter(i) + " is paused."}, func() { x.pause(i) })
		}
		for k, m := range sent {
			what := fmt.Sprintf("%s: %s on %s; ", letter(i), m.name, m.server)
			add(&x.left.Pauses, move{token: "hold-" + token(m, k), id: "hold " + m.id(), to: m.server, text: what + letter(i) + " is paused before it gets the answer."},
				func() { x.pause(i); x.deliverNow(m) })
			add(&x.left.LostReplies, move{token: "lose-" + token(m, k), id: "lose " + m.id(), to: m.server, text: what + "the answer is lost."},
				func() { m.lose(); x.deliverNow(m) })
		}
	}
	for _, s := range x.zk.list() {
		left := &x.left.Expiries
		if x.clients[s.client].crashed {
			left = new(int) // the server ends this session in any case, and at any time
			*left = 1
		}
		name := letter(s.on.client)
		add(left, move{token: "expire-" + name, to: "zookeeper", text: "The session of " + name + " ends."}, func() { x.zk.endSession(s.id) })
	}
	x.etcd.expiries(&x.left.Expiries, add)
	for _, s := range x.redis {
		if slices.ContainsFunc(x.links, func(l *link) bool { return l.peer == s }) {
			add(&x.left.Failovers, move{token: "failover-" + strings.TrimPrefix(s.name, "redis-"), to: s.name, text: s.name + " is replaced by an empty one."},
				func() { x.replace(s) })
		}
	}
	return moves
}

// replace breaks all connections with a server, and deletes its data.
func (x *schedule) replace(s *server) {
	x.touch(s.name, true)
	x.touch(s.name+" connections", true)
	s.mini.FlushAll()
	x.breakLinks(func(l *link) bool { return l.peer == s })
}
