package lockstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Link is a network link to a server on which a message can be delayed, for what only
// happens when two connections overtake each other. Close it after use.
type Link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	lose  []byte        // the answer to the next message with this in it is lost
	match []byte        // the next message from a client with this in it is held
	held  chan struct{} // closed when it is
	free  chan struct{} // closed when it may go on
	cut   bool
	conns map[net.Conn]bool
}

// NewLink opens a link to the server at target, host:port.
func NewLink(ctx context.Context, target string) (*Link, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lockstest: %w", err)
	}
	l := &Link{listener: listener, target: target, conns: map[net.Conn]bool{}}
	go l.accept()
	return l, nil
}

// Addr is where clients reach the server through the line.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// HoldNext holds up the next message from a client that contains text, and what
// follows it on its connection, until free is called. held is closed when it is
// there. A message counts as received once it is held: its client may hang up.
func (l *Link) HoldNext(text string) (held <-chan struct{}, free func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	l.match, l.held, l.free = []byte(text), make(chan struct{}), gate
	return l.held, sync.OnceFunc(func() { close(gate) })
}

// LoseAnswer loses the answer to the next message from a client that contains text: the
// server gets the message, and when it answers, the connection ends.
func (l *Link) LoseAnswer(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = []byte(text)
}

// Cut ends every connection, and each new one at once, until it is called with false.
func (l *Link) Cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		l.hangUp()
	}
}

// Close ends the line and all that runs over it.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.hangUp()
	return l.listener.Close()
}

func (l *Link) hangUp() {
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
		go l.join(client)
	}
}

func (l *Link) join(client net.Conn) {
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
	l.mu.Unlock()
	mute := new(atomic.Bool)
	go func() {
		_, _ = io.Copy(unlessMute{client, mute}, server)
		_ = client.Close()
	}()
	l.forward(server, client, mute)
	_ = server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
	delete(l.conns, server)
}

// forward hands on what the client says, also after it has hung up.
func (l *Link) forward(server, client net.Conn, mute *atomic.Bool) {
	message := make([]byte, 64<<10)
	for {
		n, err := client.Read(message)
		if n > 0 {
			l.delay(message[:n])
			if l.loses(message[:n]) {
				mute.Store(true)
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

// unlessMute writes until the connection is mute.
type unlessMute struct {
	io.Writer
	mute *atomic.Bool
}

func (w unlessMute) Write(answer []byte) (int, error) {
	if w.mute.Load() {
		return 0, io.ErrClosedPipe
	}
	return w.Writer.Write(answer) //nolint:wrapcheck // ends the copy
}

func (l *Link) loses(message []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lose == nil || !bytes.Contains(message, l.lose) {
		return false
	}
	l.lose = nil
	return true
}

func (l *Link) delay(message []byte) {
	l.mu.Lock()
	hold := l.match != nil && bytes.Contains(message, l.match)
	held, free := l.held, l.free
	if hold {
		l.match = nil
	}
	l.mu.Unlock()
	if hold {
		close(held)
		<-free
	}
}
