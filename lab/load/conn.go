package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// maxBody limits the memory for an answer. The service's answers have about 200 bytes.
const maxBody = 1 << 20

var errTooLong = errors.New("the answer is longer than 1 MiB")

// countingConn counts bytes with HTTP headers and TLS. Only its client's goroutine uses the counts.
type countingConn struct {
	net.Conn
	in, out int
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in += n
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out += n
	return n, err
}

// conn is the keep-alive connection of one client.
type conn struct {
	socket  *countingConn
	stream  net.Conn // the socket, or TLS over it
	reader  *bufio.Reader
	body    bytes.Buffer
	release func() bool // ends the watch on ctx
}

// grace is how long a stopped run still accepts answers, so that fewer outcomes are unknown.
const grace = time.Second

// dial opens the connection. When ctx ends, reads and writes on it fail after the grace time.
func dial(ctx context.Context, r request, deadline time.Time) (*conn, error) {
	dialing, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	tcp, err := new(net.Dialer).DialContext(dialing, "tcp", r.addr)
	if err != nil {
		return nil, err
	}
	socket := &countingConn{Conn: tcp}
	c := &conn{socket: socket, stream: socket}
	if r.tls {
		secure := tls.Client(socket, &tls.Config{ServerName: r.host, RootCAs: r.roots, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(dialing); err != nil {
			_ = tcp.Close()
			return nil, err
		}
		c.stream = secure
	}
	c.reader = bufio.NewReader(c.stream)
	c.release = context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Now().Add(grace)) })
	return c, nil
}

func (c *conn) close() {
	c.release()
	_ = c.socket.Close()
}

// answer is one HTTP response. The next response on the connection overwrites its body.
type answer struct {
	status int
	body   []byte
	close  bool // the server closes the connection
}

// receive does not close the body, because Close would read the rest of an endless body.
func (c *conn) receive() (answer, error) {
	res, err := http.ReadResponse(c.reader, nil) //nolint:bodyclose // see above
	if err != nil {
		return answer{}, err
	}
	c.body.Reset()
	switch n, err := c.body.ReadFrom(io.LimitReader(res.Body, maxBody+1)); {
	case err != nil:
		return answer{}, err
	case n > maxBody:
		return answer{}, errTooLong
	}
	return answer{status: res.StatusCode, body: c.body.Bytes(), close: res.Close}, nil
}
