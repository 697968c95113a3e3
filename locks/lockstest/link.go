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

// Link is a network link to a server. It can delay messages and lose answers, so that a test can
// let one connection overtake another. Close it after use.
type Link struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	lose   []byte        // text of the message whose answer is lost
	match  []byte        // text of the message that is held up
	held   chan struct{} // closed when the message has come
	free   chan struct{} // closed when the message may continue
	count  []byte        // text of the messages that are counted
	seen   int           // number of them
	cut    bool
	conns  map[net.Conn]bool
	silent *atomic.Bool // set when the connections that are open now become half open
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
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	l.match, l.held, l.free = []byte(text), make(chan struct{}), gate
	return l.held, sync.OnceFunc(func() { close(gate) })
}

// Count counts the client messages that contain text, from now on. seen returns their number.
func (l *Link) Count(text string) (seen func() int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count, l.seen = []byte(text), 0
	return func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.seen
	}
}

// LoseAnswer loses the answer to the next client message that contains text. The server receives
// the message, and the connection ends when the server answers.
func (l *Link) LoseAnswer(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = []byte(text)
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
func (l *Link) forward(server, client net.Conn, mute *atomic.Bool, silent *atomic.Bool) {
	message := make([]byte, 64<<10)
	for {
		n, err := client.Read(message)
		if n > 0 {
			l.delay(message[:n])
			if l.loses(message[:n]) {
				mute.Store(true)
			}
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
	mute   *atomic.Bool
	silent *atomic.Bool
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
	if l.count != nil && bytes.Contains(message, l.count) {
		l.seen++
	}
	l.mu.Unlock()
	if hold {
		close(held)
		<-free
	}
}
