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
	"strconv"
	"strings"
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

// receive reads one answer. It reads a plain one itself, because http.ReadResponse takes longer than all else here but
// the system calls. It does not close the body, because Close would read the rest of an endless body.
func (c *conn) receive() (answer, error) {
	if a, length, plain := c.head(); plain {
		c.body.Reset()
		_, err := io.CopyN(&c.body, c.reader, length)
		a.body = c.body.Bytes()
		return a, err
	}
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

// head reads the head of an answer that is plain: the buffer has all of it, and it has one length. Otherwise head
// reads nothing.
func (c *conn) head() (a answer, length int64, plain bool) {
	buffered, _ := c.reader.Peek(c.reader.Buffered()) // no error: so many bytes are there
	text, _, whole := bytes.Cut(buffered, []byte("\r\n\r\n"))
	var err error
	if a.status, err = strconv.Atoi(string(text[min(len(text), 9):min(len(text), 12)])); !whole || err != nil || a.status < 200 || a.status == http.StatusNoContent ||
		a.status == http.StatusNotModified || !bytes.HasPrefix(text, []byte("HTTP/1.1 ")) {
		return a, 0, false
	}
	lengths := 0
	for line := range bytes.SplitSeq(text, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case strings.EqualFold(string(name), "Content-Length"):
			length, err = strconv.ParseInt(string(value), 10, 64)
			lengths++
		case strings.EqualFold(string(name), "Connection"):
			a.close = strings.EqualFold(string(value), "close")
		case strings.EqualFold(string(name), "Transfer-Encoding"):
			return a, 0, false
		}
	}
	if lengths != 1 || err != nil || length < 0 || length > maxBody {
		return a, 0, false
	}
	_, _ = c.reader.Discard(len(text) + 4) // no error: the bytes are in the buffer
	return a, length, true
}
