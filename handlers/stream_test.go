package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oversell/handlers"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
)

const mostStreams = 16

// counts is a counter whose stream sends nothing and never ends. It has an element for each stream that has begun.
type counts struct {
	locks.Counter
	begun chan struct{}
}

func (c counts) Watch(context.Context, string) (<-chan locks.Count, error) {
	c.begun <- struct{}{}
	return make(chan locks.Count), nil
}

func streamServer(t *testing.T) (*httptest.Server, counts) {
	t.Helper()
	counter := counts{begun: make(chan struct{}, 1)}
	s := handlers.New(handlers.Config{
		Replica: "replica-1", Strategies: []locks.Strategy{steps{}}, Lab: true, Token: labToken, Log: t.Logf,
		Primitives: []locks.Primitives{{Backend: "zk", Counter: counter}},
	})
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10) //nolint:forcetypeassert // it is
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(s.Close) // runs before server.Close, which waits for the open streams
	return server, counter
}

// listen opens a stream, and reads nothing but its status.
func listen(t *testing.T, server *httptest.Server, path, token string) (net.Conn, int, problem) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) //nolint:forcetypeassert // it is
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX-Lab-Token: %s\r\n\r\n", path, token)
	if path != "/events" { // a stream of a counter sends nothing before the first count
		return conn, 0, problem{}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	var p problem
	if answer.StatusCode != http.StatusOK {
		_ = json.NewDecoder(answer.Body).Decode(&p)
		if answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", answer.Status)
		}
	}
	return conn, answer.StatusCode, p
}

// TestStreamsAreBounded opens mostStreams streams. One more is rejected without the lab's token.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	server, counter := streamServer(t)
	var first net.Conn
	for i := range mostStreams - 1 {
		conn, code, p := listen(t, server, "/events", "guess")
		if code != http.StatusOK {
			t.Fatalf("stream %d: HTTP %d %+v", i+1, code, p)
		}
		if first == nil {
			first = conn
		}
	}
	_, _, _ = listen(t, server, "/test/counter/events", "")
	<-counter.begun
	if _, code, p := listen(t, server, "/events", ""); code != http.StatusServiceUnavailable || p.Outcome != "too_many_streams" {
		t.Errorf("one stream more: HTTP %d %+v", code, p)
	}
	if _, code, p := listen(t, server, "/events", labToken); code != http.StatusOK {
		t.Errorf("the lab's own stream: HTTP %d %+v", code, p)
	}
	_ = first.Close()
	rigtest.Eventually(t, "where one has gone there is room", func() (bool, string) {
		_, code, _ := listen(t, server, "/events", "")
		return code == http.StatusOK, fmt.Sprintf("HTTP %d", code)
	})
}

// TestListenersThatDoNotRead checks that the service disconnects a listener that never reads.
func TestListenersThatDoNotRead(t *testing.T) {
	t.Parallel()
	server, _ := streamServer(t)
	for range mostStreams {
		if _, code, p := listen(t, server, "/events", ""); code != http.StatusOK {
			t.Fatalf("HTTP %d %+v", code, p)
		}
	}
	rigtest.Eventually(t, "there is room for a listener that reads", func() (bool, string) {
		for range 100 {
			server.Config.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/check/lock?strategy=steps", nil))
		}
		conn, code, _ := listen(t, server, "/events", "")
		_ = conn.Close()
		return code == http.StatusOK, fmt.Sprintf("HTTP %d", code)
	})
}

// unread is a connection whose client receives a write only when the test reads it.
type unread struct {
	*io.PipeWriter
	header http.Header
}

func (u unread) Header() http.Header      { return u.header }
func (u unread) WriteHeader(int)          {}
func (u unread) Flush()                   {}
func (u unread) CloseNotify() <-chan bool { return nil } // gin's Stream asks for it

// TestLostStepsAreCounted checks that a slow listener receives all steps except the lost ones, and
// the number of the lost steps. It also checks that a second stream names the same process.
func TestLostStepsAreCounted(t *testing.T) {
	t.Parallel()
	server, _ := streamServer(t)
	slow := bufio.NewScanner(stream(t, server))
	process := hello(t, slow)
	const sales = 800 // each sale has three steps: more than the stream's buffers hold
	for range sales {
		server.Config.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/check/lock?strategy=steps", nil))
	}
	kind, received, lost := "", 0, 0
	for received+lost < 3*sales && slow.Scan() {
		name, value, _ := strings.Cut(slow.Text(), ":")
		var data struct{ Steps int }
		switch {
		case name == "event":
			kind = value
		case name != "data":
		case json.Unmarshal([]byte(value), &data) != nil:
			t.Fatalf("%s: %s", kind, value)
		case kind == "step":
			received++
		case kind == "missed":
			lost += data.Steps
		}
	}
	if lost == 0 || received+lost != 3*sales {
		t.Errorf("%d steps received and %d lost, of %d", received, lost, 3*sales)
	}
	if again := hello(t, bufio.NewScanner(stream(t, server))); process == "" || again != process {
		t.Errorf("two streams of one process: %q and %q", process, again)
	}
	restarted, _ := streamServer(t)
	if other := hello(t, bufio.NewScanner(stream(t, restarted))); other == process {
		t.Errorf("two processes have the name %q", process)
	}
}

// stream opens a stream whose client receives nothing while the test does not read.
func stream(t *testing.T, server *httptest.Server) io.Reader {
	t.Helper()
	client, service := io.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events", nil)
	go server.Config.Handler.ServeHTTP(unread{service, http.Header{}}, request)
	return client
}

// hello returns the name of the process in the first event of a stream.
func hello(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	var event struct{ Process string }
	must(t, json.Unmarshal([]byte(data(t, lines)), &event))
	return event.Process
}
