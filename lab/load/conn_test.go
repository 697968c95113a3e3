package load

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestReceive compares the answers that receive reads itself with those that http.ReadResponse reads.
func TestReceive(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nab",
		"HTTP/1.1 409 Conflict\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
		"HTTP/1.1 2\r\n\r\n", "HTTP/1.1 200 OK\n\na", "no HTTP", "",
	} {
		c := conn{reader: bufio.NewReader(strings.NewReader(text))}
		_, _ = c.reader.Peek(1)
		got, err := c.receive()
		want, wrong := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil) //nolint:bodyclose // a text
		if wrong != nil {
			if err == nil {
				t.Errorf("%q: %+v, want the error %v", text, got, wrong)
			}
			continue
		}
		body, wrong := io.ReadAll(want.Body)
		if (err == nil) != (wrong == nil) || err == nil && (got.status != want.StatusCode || string(got.body) != string(body) || got.close != want.Close) {
			t.Errorf("%q: %+v %v, want %d %q %t %v", text, got, err, want.StatusCode, body, want.Close, wrong)
		}
	}
}
