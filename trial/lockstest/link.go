package lockstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Link is a network link to a server. It can delay messages and lose answers, so that a test can
// let one connection overtake another. Close it after use.
type Link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	rules []rule
	cut   bool
	conns map[*connection]bool
}

// rule is what a link does with the next client message that contains a text, before it forwards it.
type rule struct {
	text []byte
	do   func(*connection)
}

// NewLink opens a link to a server. The target is its host:port.
func NewLink(ctx context.Context, target string) (*Link, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lockstest: %w", err)
	}
	l := &Link{listener: listener, target: target, conns: map[*connection]bool{}}
	go l.accept()
	return l, nil
}

// Addr returns the address at which clients reach the server through the link.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// HoldNext delays the next client message that contains text, and all later messages of the same
// connection, until free is called. It closes held when the message arrives. The message is sent
// even if its client closes the connection meanwhile.
func (l *Link) HoldNext(text string) (held <-chan struct{}, free func()) {
	arrived, gate := make(chan struct{}), make(chan struct{})
	l.add(rule{[]byte(text), func(*connection) { close(arrived); <-gate }})
	return arrived, sync.OnceFunc(func() { close(gate) })
}

// LoseAnswer loses the answer to the next client message that contains text. The server receives
// the message, and the connection ends when the server answers.
func (l *Link) LoseAnswer(text string) {
	l.add(rule{[]byte(text), func(c *connection) { c.mute.Store(true) }})
}

func (l *Link) add(r rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = append(l.rules, r)
}

// apply applies the rules to a message.
func (l *Link) apply(message []byte, c *connection) {
	var due []rule
	l.mu.Lock()
	l.rules = slices.DeleteFunc(l.rules, func(r rule) bool {
		applies := bytes.Contains(message, r.text)
		if applies {
			due = append(due, r)
		}
		return applies
	})
	l.mu.Unlock()
	for _, r := range due {
		r.do(c)
	}
}

// Cut ends all connections and each new connection if cut is true. Otherwise Cut allows new
// connections again.
func (l *Link) Cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.conns {
		if cut {
			c.close()
		}
	}
}

// Silence makes the present connections half open: they stay open, but no message arrives any more on either
// side, as after the death of a host. New connections work.
func (l *Link) Silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.silent.Store(true)
	}
}

// Close ends the link and all its connections.
func (l *Link) Close() error {
	l.Cut(true)
	return l.listener.Close()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.connect(client)
	}
}

func (l *Link) connect(client net.Conn) {
	server, err := net.Dial("tcp", l.target) //nolint:noctx // ended by Close
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connection{link: l, client: client, server: server}
	l.mu.Lock()
	l.conns[c] = true
	if l.cut {
		c.close()
	}
	l.mu.Unlock()
	go func() {
		_, _ = io.Copy(answers{c}, server)
		_ = client.Close()
	}()
	// A client that closes its connection does not stop the messages that it has already sent.
	_, _ = io.Copy(messages{c}, client)
	_ = server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// connection is one of a client through a link.
type connection struct {
	link           *Link
	client, server net.Conn
	mute           atomic.Bool // its next answer is lost
	silent         atomic.Bool // it is half open
}

func (c *connection) close() { _, _ = c.client.Close(), c.server.Close() }

// messages are those to the server.
type messages struct{ *connection }

func (m messages) Write(message []byte) (int, error) {
	m.link.apply(message, m.connection)
	if m.silent.Load() {
		return len(message), nil
	}
	return m.server.Write(message)
}

// answers are those to the client.
type answers struct{ *connection }

func (a answers) Write(answer []byte) (int, error) {
	switch {
	case a.mute.Load():
		return 0, io.ErrClosedPipe
	case a.silent.Load():
		return len(answer), nil
	}
	return a.client.Write(answer)
}
