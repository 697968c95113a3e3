package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"oversell/handlers"
	"oversell/locks"
)

const mostStreams = 16

// counts sends nothing and never ends.
type counts struct{ untouchedCounter }

func (counts) Watch(context.Context, string) (<-chan locks.Count, error) {
	return make(chan locks.Count), nil
}

func streamServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := handlers.New(handlers.Config{
		Replica: "replica-1", Strategies: []locks.Strategy{steps{}}, Lab: true, Token: labToken, Log: t.Logf,
		Primitives: []locks.Primitives{{Backend: "zk", Counter: counts{}}},
	})
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10) //nolint:forcetypeassert // it is
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(s.Close) // first: it ends the streams that the server waits for
	return server
}

// listen opens a stream, and reads only the status: 200 or that of a problem.
func listen(t *testing.T, server *httptest.Server, path, token string) (net.Conn, int, problem) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) //nolint:forcetypeassert // it is
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX-Lab-Token: %s\r\n\r\n", path, token)
	if path != "/events" { // nothing comes before the first count
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

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// Strangers have a bounded number of streams, of both kinds together, and the lab another one.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	server := streamServer(t)
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
	eventually(t, "one stream more is refused", func() bool {
		conn, code, p := listen(t, server, "/events", "")
		_ = conn.Close()
		if code != http.StatusOK && (code != http.StatusServiceUnavailable || p.Outcome != "too_many_streams") {
			t.Fatalf("HTTP %d %+v", code, p)
		}
		return code != http.StatusOK
	})
	if _, code, p := listen(t, server, "/events", labToken); code != http.StatusOK {
		t.Errorf("the lab's own stream: HTTP %d %+v", code, p)
	}
	_ = first.Close()
	eventually(t, "where one has gone there is room", func() bool {
		_, code, _ := listen(t, server, "/events", "")
		return code == http.StatusOK
	})
}

// A listener that never reads is dropped.
func TestDeafListeners(t *testing.T) {
	t.Parallel()
	server := streamServer(t)
	for range mostStreams {
		if _, code, p := listen(t, server, "/events", ""); code != http.StatusOK {
			t.Fatalf("HTTP %d %+v", code, p)
		}
	}
	eventually(t, "there is room for a listener that reads", func() bool {
		for range 100 {
			server.Config.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/check/lock?strategy=steps", nil))
		}
		conn, code, _ := listen(t, server, "/events", "")
		_ = conn.Close()
		return code == http.StatusOK
	})
}
