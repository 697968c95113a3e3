package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// maxBody bounds an answer: ours have 200 bytes, and a wrong target may send anything.
const maxBody = 1 << 20

var errTooLong = errors.New("answer longer than 1 MiB")

// counted counts the bytes that really cross the socket, headers and TLS included. Only
// the client's own goroutine reads, writes and looks at the counters.
type counted struct {
	net.Conn
	in, out int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in += n
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out += n
	return n, err
}

// wire is one client's keep-alive connection.
type wire struct {
	conn   net.Conn // what is spoken on: the socket, or TLS over it
	raw    *counted
	read   *bufio.Reader
	body   []byte
	forget func() bool // ends the watch on ctx
}

// grace is how long a stopped run waits for the answers that are on their way: most
// come, and what they say is better than unknown.
const grace = time.Second

// dial opens the connection. When ctx ends, whatever waits on the connection is woken,
// after a moment of grace.
func dial(ctx context.Context, r request, deadline time.Time) (*wire, error) {
	dialer := net.Dialer{Deadline: deadline}
	socket, err := dialer.DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return nil, err
	}
	raw := &counted{Conn: socket}
	w := &wire{conn: raw, raw: raw, body: make([]byte, 0, 512)}
	if r.tls {
		secure := tls.Client(raw, &tls.Config{ServerName: r.host, RootCAs: r.roots, MinVersion: tls.VersionTLS12})
		handshake, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		if err := secure.HandshakeContext(handshake); err != nil {
			_ = socket.Close()
			return nil, err
		}
		w.conn = secure
	}
	w.read = bufio.NewReader(w.conn)
	w.forget = context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Now().Add(grace)) })
	return w, nil
}

func (w *wire) close() {
	w.forget()
	_ = w.raw.Close()
}

// answer is one response. Its body is overwritten by the next one.
type answer struct {
	status int
	body   []byte
	close  bool // the server won't take another request on this connection
}

// receive reads one whole response. It never closes the body: that would wait for the
// rest of an endless answer, and whoever fails here drops the connection anyway.
func (w *wire) receive() (answer, error) {
	res, err := http.ReadResponse(w.read, nil) //nolint:bodyclose // see above
	if err != nil {
		return answer{}, err
	}
	w.body = w.body[:0]
	for {
		if len(w.body) == cap(w.body) {
			w.body = append(w.body, 0)[:len(w.body)]
		}
		n, err := res.Body.Read(w.body[len(w.body):cap(w.body)])
		w.body = w.body[:len(w.body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return answer{status: res.StatusCode, body: w.body, close: res.Close}, nil
		case err != nil:
			return answer{}, err
		case len(w.body) > maxBody:
			return answer{}, errTooLong
		}
	}
}
