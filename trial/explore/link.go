package explore

import (
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// peer is a server that a link leads to.
type peer interface {
	// message describes what a client sends in one piece. deliver gives it to the server. waits is
	// false for what is of no interest, such as the beginning of a connection: it arrives at once.
	message(l *link, b []byte) (m message, waits bool, err error)
}

// link is a connection of a client with a server. What the client sends waits in the network until
// the schedule delivers it. What the server sends arrives at once, unless the client is paused.
type link struct {
	news
	w          *world
	client     int
	peer       peer
	session    int64 // of ZooKeeper, once it has begun
	toSrv      []byte
	toCli      []byte
	waits      bool // for the answer to a message of the schedule, or for a notification
	subscribed bool
	mute       bool // no answer reaches the client any more
	broken     bool
	ended      bool // the server sends nothing more
}

func (l *link) breakNow() {
	l.broken = true
	l.w.wake(l.client)
	l.w.inFlight = slices.DeleteFunc(l.w.inFlight, func(m *message) bool { return m.on == l })
	l.change()
}

// forward lets the server read what a client has sent.
func (l *link) forward(b []byte) {
	l.toSrv = append(l.toSrv, b...)
	l.change()
}

// clientEnd is the connection as the client sees it.
type clientEnd struct {
	*link
	deadline time.Time
}

func (c *clientEnd) Write(b []byte) (int, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.broken {
		return 0, io.ErrClosedPipe
	}
	m, waits, err := c.peer.message(c.link, slices.Clone(b))
	if err != nil {
		return 0, err
	}
	if c.waits = waits || c.subscribed; !waits {
		m.deliver()
		return len(b), nil
	}
	m.client, m.on, m.lose = c.client, c.link, func() { c.mute = true }
	c.w.send(&m)
	return len(b), nil
}

func (c *clientEnd) Read(b []byte) (int, error) {
	for {
		n, wake, err := c.arrived(b)
		if n > 0 || err != nil {
			return n, err
		}
		if err := c.await(wake); err != nil {
			return 0, err
		}
	}
}

// arrived reads what is there. Without anything, it returns what to wait for.
func (c *clientEnd) arrived(b []byte) (n int, wake <-chan struct{}, err error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	client := c.w.clients[c.client]
	switch {
	case client.paused && c.waits:
		return 0, client.running, nil
	case c.mute && len(c.toCli) > 0:
		c.broken = true
		c.change()
		return 0, nil, io.EOF
	case c.broken || c.ended && len(c.toCli) == 0:
		return 0, nil, io.EOF
	}
	n = copy(b, c.toCli)
	c.toCli = c.toCli[n:]
	return n, c.changed, nil
}

// await returns an error at the deadline, also in a pause: a process that goes on finds that its
// timers are over.
func (c *clientEnd) await(wake <-chan struct{}) error {
	if c.deadline.IsZero() {
		<-wake
		return nil
	}
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case <-wake:
		return nil
	case <-timer.C:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
}

// Close leaves a message in the network: the server still executes it.
func (c *clientEnd) Close() error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if slices.ContainsFunc(c.w.inFlight, func(m *message) bool { return m.on == c.link }) {
		c.mute = true
		return nil
	}
	c.broken = true
	c.change()
	return nil
}

func (c *clientEnd) SetDeadline(t time.Time) error     { return c.SetReadDeadline(t) }
func (c *clientEnd) SetReadDeadline(t time.Time) error { c.deadline = t; return nil }
func (c *clientEnd) SetWriteDeadline(time.Time) error  { return nil }
func (c *clientEnd) LocalAddr() net.Addr               { return address() }
func (c *clientEnd) RemoteAddr() net.Addr              { return address() }

// serverEnd is the connection as the server sees it, which has no deadlines.
type serverEnd struct {
	net.Conn // nil
	*link
}

func (s serverEnd) Write(b []byte) (int, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.broken {
		return 0, io.ErrClosedPipe
	}
	if s.subscribed || s.client != s.w.effect.sender {
		s.w.wake(s.client)
	}
	if s.client == s.w.effect.sender && s.waits {
		s.w.effect.answer += string(b)
	}
	s.toCli = append(s.toCli, b...)
	s.change()
	return len(b), nil
}

func (s serverEnd) Read(b []byte) (int, error) {
	for {
		s.w.mu.Lock()
		changed := s.changed
		if len(s.toSrv) > 0 {
			n := copy(b, s.toSrv)
			s.toSrv = s.toSrv[n:]
			s.w.mu.Unlock()
			return n, nil
		}
		broken := s.broken
		s.w.mu.Unlock()
		if broken {
			return 0, io.EOF
		}
		<-changed
	}
}

func (s serverEnd) Close() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.broken = true
	s.change()
	return nil
}

func address() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
