package load_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
)

const soldBody = `{"outcome":"sold","strategy":"redis","replica":"replica-2","product":1,"qty":1,` +
	`"remaining":4999,"fence":17,"waited_ms":1.5,"held_ms":0.25,"pooled_ms":0.125,"retries":2}`

func plan(target string, clients, loops int) load.Plan {
	return load.Plan{
		Target: target, Strategy: "redis", Product: 1, Qty: 1,
		Clients: clients, Loops: loops, Wait: time.Second, Seed: 7,
	}
}

// service starts a server that answers with handle, in place of a replica.
func service(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server
}

func sold(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, soldBody)
}

func TestEachClientLoopsOnOneConnectionOfItsOwn(t *testing.T) {
	var mu sync.Mutex
	perConn := map[string]int{}
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		perConn[r.RemoteAddr]++
		mu.Unlock()
		sold(w, r)
	})
	h, err := load.Run(t.Context(), plan(server.URL, 7, 11), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Ops) != 77 || len(perConn) != 7 {
		t.Fatalf("%d requests over %d connections, want 77 over 7", len(h.Ops), len(perConn))
	}
	for conn, n := range perConn {
		if n != 11 {
			t.Errorf("connection %s carried %d requests, want 11", conn, n)
		}
	}
	checkClosedLoop(t, h)
}

// checkClosedLoop checks that the requests of each client do not overlap.
// TestUntil checks that the clients go on until the channel is closed, and that each sends at least
// its planned number of requests.
func TestUntil(t *testing.T) {
	var requests atomic.Int64
	until := make(chan struct{})
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 50 {
			close(until)
		}
		sold(w, r)
	})
	p := plan(server.URL, 3, 2)
	p.Until = until
	var last load.Progress
	h, err := load.Run(t.Context(), p, func(p load.Progress) { last = p })
	if err != nil || len(h.Ops) < 50 || len(h.Ops) != int(requests.Load()) || last.Total != len(h.Ops) {
		t.Errorf("%d operations, %d requests, %+v, %v", len(h.Ops), requests.Load(), last, err)
	}
	h, err = load.Run(t.Context(), p, nil) // the channel is closed already
	if err != nil || len(h.Ops) != 6 {
		t.Errorf("%d operations, want 3 x 2, %v", len(h.Ops), err)
	}
}

func checkClosedLoop(t *testing.T, h history.History) {
	t.Helper()
	last, opened := map[int]time.Duration{}, map[int]int{}
	for i, op := range h.Ops {
		if i > 0 && op.Call < h.Ops[i-1].Call {
			t.Errorf("operation %d was called before its predecessor", i)
		}
		if op.Call < last[op.Client] || op.Return < op.Call || op.FirstByte <= 0 || op.Call+op.FirstByte > op.Return {
			t.Errorf("client %d: call %v, first byte after %v, return %v, previous return %v",
				op.Client, op.Call, op.FirstByte, op.Return, last[op.Client])
		}
		last[op.Client] = op.Return
		if op.Connect > 0 {
			opened[op.Client]++
		}
		if op.Outcome != history.OK || op.Reason != history.Sold || op.Replica != "replica-2" || op.Retries != 2 ||
			op.Waited != 1500*time.Microsecond || op.Held != 250*time.Microsecond || op.Pooled != 125*time.Microsecond {
			t.Fatalf("wrongly read: %+v", op)
		}
	}
	for c := 1; c <= h.Clients; c++ {
		if opened[c] != 1 {
			t.Errorf("client %d connected %d times, want once", c, opened[c])
		}
	}
}

// meter counts bytes on the server's side of the sockets.
type meter struct {
	net.Listener
	in, out *atomic.Int64
}

func (m meter) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	return meteredConn{c, m.in, m.out}, err
}

type meteredConn struct {
	net.Conn
	in, out *atomic.Int64
}

func (c meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

func (c meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n))
	return n, err
}

func TestBytesAreWhatTheServerSaw(t *testing.T) {
	var in, out atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(sold))
	server.Listener = meter{server.Listener, &in, &out}
	server.Start()
	h, err := load.Run(t.Context(), plan(server.URL, 3, 5), nil)
	server.Close() // its counters are complete now
	if err != nil {
		t.Fatal(err)
	}
	gotIn, gotOut := 0, 0
	for _, op := range h.Ops {
		gotIn += op.BytesIn
		gotOut += op.BytesOut
	}
	if int64(gotIn) != out.Load() || int64(gotOut) != in.Load() {
		t.Errorf("received %d, sent %d; the server sent %d, received %d", gotIn, gotOut, out.Load(), in.Load())
	}
}

// serveRaw serves TCP. It calls handle for every request, to answer it or not, and closes the
// connection when handle returns false.
func serveRaw(t *testing.T, handle func(conn net.Conn, nth int) (keep bool)) (target string, requests *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer func() { _ = conn.Close() }()
				read := bufio.NewReader(conn)
				for nth := 1; ; nth++ {
					if _, err := http.ReadRequest(read); err != nil {
						return
					}
					requests.Add(1)
					if !handle(conn, nth) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); conns.Wait() })
	return "http://" + listener.Addr().String(), requests
}

func answer(conn net.Conn, header, body string) {
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s", len(body), header, body)
}

// TestNeverSendsTwice checks what net/http's Transport does not guarantee. When a kept connection
// turns out to be closed, Transport sends a GET again, which sells again.
func TestNeverSendsTwice(t *testing.T) {
	tests := []struct {
		name    string
		handle  func(conn net.Conn, nth int) bool
		unknown int
	}{
		{"closes instead of the second answer", func(conn net.Conn, nth int) bool {
			if nth == 1 {
				answer(conn, "", soldBody)
			}
			return nth == 1
		}, 5},
		{"closes before any answer", func(net.Conn, int) bool { return false }, 10},
		{"closes within the answer", func(conn net.Conn, _ int) bool {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n"+soldBody)
			return false
		}, 10},
		{"announces that it closes", func(conn net.Conn, _ int) bool {
			answer(conn, "Connection: close\r\n", soldBody)
			return false
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, requests := serveRaw(t, tt.handle)
			h, err := load.Run(t.Context(), plan(target, 1, 10), nil)
			if err != nil {
				t.Fatal(err)
			}
			unknown := history.Count(h.Ops, func(op *history.Op) bool {
				return op.Outcome == history.Unknown && op.Reason == history.Broken
			})
			if len(h.Ops) != 10 || requests.Load() != 10 || unknown != tt.unknown {
				t.Errorf("recorded %d operations, %d of them unknown, and the server saw %d requests; want 10, %d, 10",
					len(h.Ops), unknown, requests.Load(), tt.unknown)
			}
		})
	}
}

// In TestStaleConnection, the server closes the connection after an answer that promised to
// keep it. The next request may be lost, but it is never sent again.
func TestStaleConnection(t *testing.T) {
	target, requests := serveRaw(t, func(conn net.Conn, _ int) bool {
		answer(conn, "", soldBody)
		return false
	})
	h, err := load.Run(t.Context(), plan(target, 4, 20), nil)
	if err != nil {
		t.Fatal(err)
	}
	ok := history.Count(h.Ops, func(op *history.Op) bool { return op.Outcome == history.OK })
	if len(h.Ops) != 80 || int64(ok) != requests.Load() {
		t.Errorf("%d operations, %d sold, and the server answered %d", len(h.Ops), ok, requests.Load())
	}
	for _, op := range h.Ops {
		if op.Outcome != history.OK && (op.Outcome != history.Unknown || op.Detail == "") {
			t.Fatalf("a request over a closed connection: %+v", op)
		}
	}
}

func TestTimeoutIsUnknown(t *testing.T) {
	release := make(chan struct{})
	server := service(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	p := plan(server.URL, 2, 2)
	p.Wait, p.Timeout = 0, 50*time.Millisecond
	h, err := load.Run(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range h.Ops {
		if op.Outcome != history.Unknown || op.Reason != history.TimedOut || op.Elapsed() < p.Timeout || op.Status != 0 {
			t.Errorf("not a time-out: %+v", op)
		}
	}
	if len(h.Ops) != 4 {
		t.Errorf("%d operations, want 4", len(h.Ops))
	}
}

func TestStopRecordsUnfinishedRequests(t *testing.T) {
	release := make(chan struct{})
	var waiting atomic.Int64
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		if waiting.Add(1) > 20 {
			<-release
		}
		sold(w, r)
	})
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for waiting.Load() < 25 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	h, err := load.Run(ctx, plan(server.URL, 5, 1000), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	unknown := history.Count(h.Ops, func(op *history.Op) bool {
		return op.Outcome == history.Unknown && op.Reason == history.Interrupted
	})
	if len(h.Ops) != 25 || unknown != 5 {
		t.Errorf("%d operations, %d interrupted; want 25 and 5", len(h.Ops), unknown)
	}
}

// Answers that arrive just after the stop still count.
func TestStopRecordsLastAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Add(5)
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait()
		cancel()
		sold(w, r)
	})
	h, err := load.Run(ctx, plan(server.URL, 5, 1000), nil)
	ok := history.Count(h.Ops, func(op *history.Op) bool { return op.Outcome == history.OK })
	if len(h.Ops) != 5 || ok != 5 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d operations, %d sold, error %v; want 5, 5 and the context's", len(h.Ops), ok, err)
	}
}

func TestStopBeforeTheStartSendsNothing(t *testing.T) {
	var requests atomic.Int64
	server := service(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, err := load.Run(ctx, plan(server.URL, 5, 5), nil)
	if len(h.Ops) != 0 || requests.Load() != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d operations, %d requests, error %v", len(h.Ops), requests.Load(), err)
	}
}

func TestStopDuringRampUp(t *testing.T) {
	server := service(t, sold)
	ctx, cancel := context.WithCancel(t.Context())
	p := plan(server.URL, 10, 1)
	p.RampUp = time.Hour // the second client would start after six minutes
	var done atomic.Bool
	h, err := load.Run(ctx, p, func(g load.Progress) {
		if g.Done == 1 && !done.Swap(true) {
			cancel()
		}
	})
	if len(h.Ops) != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d operations, error %v; want 1 and the context's", len(h.Ops), err)
	}
}

func TestUnreachableIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := "http://" + listener.Addr().String()
	_ = listener.Close()
	h, err := load.Run(t.Context(), plan(target, 3, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range h.Ops {
		if op.Outcome != history.Refused || op.Reason != history.Unreachable || op.BytesOut != 0 || op.Detail == "" {
			t.Fatalf("no server listens: %+v", op)
		}
	}
	if len(h.Ops) != 12 {
		t.Errorf("%d operations, want 12", len(h.Ops))
	}
}

func TestProgressEndsWithAllRequests(t *testing.T) {
	var nth atomic.Int64
	server := service(t, func(w http.ResponseWriter, r *http.Request) {
		switch nth.Add(1) % 3 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"outcome":"not_acquired"}`)
		case 1:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"outcome":"sold_out"}`)
		default:
			sold(w, r)
		}
	})
	var seen []load.Progress
	var took []time.Duration
	_, err := load.Run(t.Context(), plan(server.URL, 3, 10), func(p load.Progress) { seen, took = append(seen, p), append(took, p.Took...) })
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Done < seen[i-1].Done {
			t.Errorf("progress fell from %d to %d", seen[i-1].Done, seen[i].Done)
		}
	}
	last := seen[len(seen)-1]
	if last.Done != 30 || last.Total != 30 || last.Sold != 10 || last.Failed != 10 {
		t.Errorf("the last progress is %+v", last)
	}
	if len(took) != 30 || slices.Min(took) <= 0 {
		t.Errorf("the times are %v", took)
	}
}

func TestInvalidPlanSendsNothing(t *testing.T) {
	if _, err := load.Run(t.Context(), plan("http://127.0.0.1:1", 0, 1), nil); err == nil {
		t.Error("no error for a run without clients")
	}
}

// BenchmarkLoad measures one request, including the work of the test's server.
func BenchmarkLoad(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(sold))
	defer server.Close()
	b.ReportAllocs()
	if _, err := load.Run(b.Context(), plan(server.URL, 10, max(1, b.N/10)), nil); err != nil {
		b.Fatal(err)
	}
}
