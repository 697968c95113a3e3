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

	mu     sync.Mutex
	rules  []rule
	cut    bool
	conns  map[net.Conn]bool
	silent *atomic.Bool // set when the connections that are open now become half open
}

// rule is what a link does with the client messages that contain a text, before it forwards them.
type rule struct {
	text []byte
	once bool                    // it applies to the first message only
	do   func(mute *atomic.Bool) // mute is set when the answer is lost
}

// NewLink opens a link to a server. The target is its host:port.
func NewLink(ctx context.Context, target string) (*Link, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lockstest: %w", err)
	}
	l := &Link{listener: listener, target: target, conns: map[net.Conn]bool{}, silent: new(atomic.Bool)}
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
	l.add(rule{[]byte(text), true, func(*atomic.Bool) { close(arrived); <-gate }})
	return arrived, sync.OnceFunc(func() { close(gate) })
}

// Count counts the client messages that contain text, from now on. seen returns their number.
func (l *Link) Count(text string) (seen func() int) {
	var n atomic.Int64
	l.add(rule{[]byte(text), false, func(*atomic.Bool) { n.Add(1) }})
	return func() int { return int(n.Load()) }
}

// LoseAnswer loses the answer to the next client message that contains text. The server receives
// the message, and the connection ends when the server answers.
func (l *Link) LoseAnswer(text string) {
	l.add(rule{[]byte(text), true, func(mute *atomic.Bool) { mute.Store(true) }})
}

func (l *Link) add(r rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = append(l.rules, r)
}

// apply applies the rules to a message.
func (l *Link) apply(message []byte, mute *atomic.Bool) {
	l.mu.Lock()
	var all []rule
	l.rules = slices.DeleteFunc(l.rules, func(r rule) bool {
		applies := bytes.Contains(message, r.text)
		if applies {
			all = append(all, r)
		}
		return applies && r.once
	})
	l.mu.Unlock()
	for _, r := range all {
		r.do(mute)
	}
}

// Cut ends all connections and each new connection if cut is true. Otherwise Cut allows new
// connections again.
func (l *Link) Cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		l.closeAll()
	}
}

// Silence makes the present connections half open: they stay open, but no message arrives any more on either
// side, as after the death of a host. New connections work.
func (l *Link) Silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent.Store(true)
	l.silent = new(atomic.Bool)
}

// Close ends the link and all its connections.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.closeAll()
	return l.listener.Close()
}

func (l *Link) closeAll() {
	for c := range l.conns {
		_ = c.Close()
	}
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
	l.mu.Lock()
	l.conns[client], l.conns[server] = true, true
	if l.cut {
		_, _ = client.Close(), server.Close()
	}
	silent := l.silent
	l.mu.Unlock()
	mute := new(atomic.Bool)
	go func() {
		_, _ = io.Copy(unlessMute{client, mute, silent}, server)
		_ = client.Close()
	}()
	l.forward(server, client, mute, silent)
	_ = server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
	delete(l.conns, server)
}

// forward sends the client's messages to the server. A client that closes its connection does not
// stop the messages that it has already sent.
func (l *Link) forward(server, client net.Conn, mute, silent *atomic.Bool) {
	message := make([]byte, 64<<10)
	for {
		n, err := client.Read(message)
		if n > 0 {
			l.apply(message[:n], mute)
			if silent.Load() {
				continue
			}
			if _, err := server.Write(message[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

type unlessMute struct {
	io.Writer
	mute, silent *atomic.Bool
}

func (w unlessMute) Write(answer []byte) (int, error) {
	if w.mute.Load() {
		return 0, io.ErrClosedPipe
	}
	if w.silent.Load() {
		return len(answer), nil
	}
	return w.Writer.Write(answer)
}
