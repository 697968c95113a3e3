package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// world is what the clients of one schedule can reach: servers, and a network that delivers nothing
// by itself. It must be created in the bubble of its schedule, see run.
type world struct {
	mu       sync.Mutex
	clients  []*client
	inFlight []*message
	redis    []*server
	zk       *ensemble
	links    []*link
	sent     int // number of messages
	moment   int // counts the moves, and the ticks of the clock
	row      row
	effect   effect   // of the move that is performed
	watched  *watched // a Redis that may change in this move
	over     bool     // the schedule has ended: the network delivers everything at once
}

// news wakes up those who wait for the next change. The lock of its owner protects it.
type news struct{ changed chan struct{} } // closed and replaced at each change

func newNews() news { return news{make(chan struct{})} }

func (n *news) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// client is a process of its own, which buys one piece.
type client struct {
	sale    func() // nil once it has begun
	paused  bool
	frozen  time.Duration // time that has passed since the pause
	crashed bool
	// mayResume is true once in each leap of the pause.
	mayResume bool
	done      bool
	running   chan struct{}  // closed unless the client is paused
	sent      map[string]int // number of messages by their keys

	err     error
	inVain  bool // it has waited for the lock as long as it may
	holding bool // from the grant until the write, or until the end of the sale
}

// message is a command, or a statement, on its way to a server. Its client waits for the answer.
type message struct {
	client  int
	name    string // the same in each repetition of a schedule: it has no random token
	path    string // the functions that sent it, for messages of several goroutines at one instant
	key     string // name, server and path
	moment  int    // when it was sent; goroutines of one client may send several at a moment
	order   int    // among all messages
	n       int    // among the messages of the client with this key
	server  string
	writes  bool
	keys    []string    // of a Redis: what it reads or writes; nil for all
	deliver func()      // executes it; the answer reaches the client if it is not paused
	lose    func()      // breaks the connection, so that no answer comes
	on      *link       // nil for a request, see call
	answer  chan<- bool // of a request: false if the answer is lost
	lost    error       // of a request: what the client gets if the answer is lost
}

var errCrashed = errors.New("this process has crashed")

func newWorld(clients, servers int) *world {
	w := &world{row: row{count: initialCount}}
	for range clients {
		running := make(chan struct{})
		close(running)
		w.clients = append(w.clients, &client{running: running, sent: map[string]int{}})
	}
	w.zk = newEnsemble(w)
	for i := range servers {
		w.redis = append(w.redis, &server{name: fmt.Sprintf("redis-%d", i+1), scripts: map[string]bool{}})
	}
	return w
}

// send puts a message on its way. The caller must hold mu.
func (w *world) send(m *message) {
	if w.over {
		m.deliver()
		return
	}
	c := w.clients[m.client]
	w.effect.goesOn = w.effect.goesOn || m.client == w.effect.sender
	m.path = callers()
	m.key = m.name + " " + m.server + " " + m.path
	w.sent++
	m.moment, m.order = w.moment, w.sent
	c.sent[m.key]++
	m.n = c.sent[m.key]
	w.inFlight = append(w.inFlight, m)
	slices.SortStableFunc(w.inFlight, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.key, b.key), cmp.Compare(a.n, b.n))
	})
}

// call sends a request, which has no link, and returns what execute returns. It returns when the answer has
// arrived and the client is not paused. If ctx ends before, the request stays in the network: the server
// still executes it.
func (w *world) call(ctx context.Context, m *message, execute func() error) error {
	answer, lost := make(chan bool, 1), false
	var failed error
	disconnect := m.lose
	m.answer = answer
	m.deliver = func() { failed = execute(); answer <- !lost }
	m.lose = func() { lost = true; disconnect() }
	w.mu.Lock()
	c := w.clients[m.client]
	// A crashed client takes no stock, also at the end of the schedule.
	if w.dead(m.client) || c.crashed && m.server == mysqlServer {
		w.mu.Unlock()
		return errCrashed
	}
	w.send(m)
	w.mu.Unlock()
	select {
	case arrived := <-answer:
		if err := w.awaitRunning(ctx, c); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.dead(m.client):
			return errCrashed
		case !arrived:
			return m.lost
		}
		return failed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitRunning returns once a client is not paused, or an error if ctx ends during the pause.
func (w *world) awaitRunning(ctx context.Context, c *client) error {
	w.mu.Lock()
	running := c.running
	w.mu.Unlock()
	select {
	case <-running:
		return nil
	default:
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dead reports whether a client can reach no server. At the end of the schedule, a crashed client may
// connect: it repeats its releases until then.
func (w *world) dead(client int) bool { return w.clients[client].crashed && !w.over }

// callers returns the code lines that have led here, as a text that is the same in each run.
func callers() string {
	var lines [64]uintptr
	n := runtime.Callers(3, lines[:])
	return fmt.Sprint(lines[:n])
}

// take removes a message from the network.
func (w *world) take(m *message) {
	w.inFlight = slices.DeleteFunc(w.inFlight, func(other *message) bool { return other == m })
}

// before reports whether m arrives before another message on the same connection. Of the messages of
// one moment, any goroutine may have sent the first one: it is the same in each repetition.
func (m *message) before(other *message) bool {
	return cmp.Or(cmp.Compare(m.moment, other.moment), cmp.Compare(m.key, other.key), cmp.Compare(m.n, other.n)) < 0
}

// from returns the messages of a client that can be delivered now: on each connection, the first.
func (w *world) from(client int) (messages []*message) {
	for _, m := range w.inFlight {
		behind := func(other *message) bool { return m.on != nil && other.on == m.on && other.before(m) }
		if m.client == client && !slices.ContainsFunc(w.inFlight, behind) {
			messages = append(messages, m)
		}
	}
	return messages
}

// deliverNow lets a message reach its server.
func (w *world) deliverNow(m *message) {
	w.take(m)
	w.effect.sender = m.client
	if i := slices.IndexFunc(w.redis, func(s *server) bool { return s.name == m.server }); i >= 0 && m.keys != nil {
		w.watched = &watched{w.redis[i], m.keys, w.redis[i].content()}
	} else {
		w.touch(m.server, m.writes)
	}
	m.deliver()
}

// touch notes that the move reads or writes data.
func (w *world) touch(data string, writes bool) {
	w.effect.data = append(w.effect.data, access{to: data, writes: writes})
}

// wake notes that the move changes what a client sees, apart from the answer to its message.
func (w *world) wake(client int) { w.effect.clients[client] = true }

// hold notes that a client begins or ends to hold the lock.
func (w *world) hold(client int, begins bool) {
	if c := w.clients[client]; c.holding != begins {
		c.holding = begins
		w.effect.holds = append(w.effect.holds, hold{client, begins})
	}
}

// pause freezes a client: no message of it is delivered, and it reads no answer. Its timers fire
// nevertheless, as those of a process do when it goes on.
func (w *world) pause(client int) {
	c := w.clients[client]
	w.wake(client)
	c.paused, c.frozen, c.mayResume, c.running = true, 0, false, make(chan struct{})
}

func (w *world) resume(client int) {
	c := w.clients[client]
	w.wake(client)
	c.paused = false
	close(c.running)
}

// crash ends a client: its messages are gone, and its connections are broken.
func (w *world) crash(client int) {
	w.wake(client)
	w.hold(client, false)
	w.clients[client].crashed = true
	for _, m := range slices.Clone(w.inFlight) {
		if m.client == client {
			w.drop(m)
		}
	}
	w.breakLinks(func(l *link) bool { return l.client == client })
	if w.clients[client].paused {
		w.resume(client)
	}
}

// drop loses a message on its way to the server.
func (w *world) drop(m *message) {
	w.take(m)
	if m.on == nil {
		m.answer <- false
	}
}

func (w *world) breakLinks(which func(*link) bool) {
	for _, l := range w.links {
		if which(l) {
			l.breakNow()
		}
	}
}

// end delivers everything from now on, so that all goroutines of the clients can end.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for i, c := range w.clients {
		if c.paused {
			w.resume(i)
		}
	}
	late := slices.Clone(w.inFlight)
	slices.SortFunc(late, func(a, b *message) int { return a.order - b.order })
	for _, m := range late {
		w.take(m)
		m.deliver()
	}
}
