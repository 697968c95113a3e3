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
	"sync/atomic"
	"testing"
	"time"

	"oversell/api"
	"oversell/handlers"
	"oversell/locks"
	"oversell/stock"
)

// orderRecorder is a strategy that stores the last order, and counts the orders.
type orderRecorder struct {
	id   string
	last atomic.Pointer[stock.Order]
	n    atomic.Int64
}

func (s *orderRecorder) Card() api.Card { return api.Card{ID: s.id, Locker: true} }

func (s *orderRecorder) Deduct(_ context.Context, o stock.Order) (stock.Receipt, error) {
	s.last.Store(&o)
	s.n.Add(1)
	return stock.Receipt{}, nil
}

func serviceOf(t *testing.T, strategies ...locks.Strategy) *handlers.Service {
	t.Helper()
	s := handlers.New(handlers.Config{Replica: "replica-1", Strategies: strategies, Lab: true, Token: labToken, Log: t.Logf})
	t.Cleanup(s.Close)
	return s
}

func send(t *testing.T, s http.Handler, method, path, kind, body string) (int, problem) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("X-Lab-Token", labToken)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Errorf("%s %s %s: %v in %s", method, path, body, err, w.Body)
	}
	return w.Code, p
}

// TestBodyOfParameters checks that parameters in the body have the same effect as in the query.
func TestBodyOfParameters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, query, kind, body string }{
		{"POST", "", "application/json", `{"strategy":"other","product":2,"qty":3,"hold":"1ms","nested":true}`},
		{"POST", "", "application/json; charset=utf-8", ` {"strategy":"other","product":"2","qty":"3","hold":"1ms","nested":"true"} `},
		{"POST", "", "application/x-www-form-urlencoded", "strategy=other&product=2&qty=3&hold=1ms&nested=true"},
		{"POST", "?strategy=other&product=2", "application/json", `{"qty":3,"hold":"1ms","nested":true}`},
		{"GET", "?strategy=other&product=2", "application/x-www-form-urlencoded", "qty=3&hold=1ms&nested=true"},
	} {
		none, other := &orderRecorder{id: "none"}, &orderRecorder{id: "other"}
		code, _ := send(t, serviceOf(t, none, other), c.method, "/check/lock"+c.query, c.kind, c.body)
		o := other.last.Load()
		if code != http.StatusOK || none.n.Load() > 0 || o == nil {
			t.Errorf("%s %s %s: HTTP %d, none sold %d times, other got %v", c.method, c.query, c.body, code, none.n.Load(), o)
			continue
		}
		if o.Product != 2 || o.Qty != 3 || o.Work != time.Millisecond || !o.Nested {
			t.Errorf("%s %s %s: the order was %+v", c.method, c.query, c.body, *o)
		}
	}
}

// TestBadBodies checks that a body that cannot be read is rejected, and that no sale takes place.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	none := &orderRecorder{id: "none"}
	s := serviceOf(t, none)
	for _, c := range []struct {
		method, query, kind, body, parameter string
		status                               int
	}{
		{"POST", "", "", "product=2", "Content-Type", 415},
		{"POST", "", "text/plain", "product=2", "Content-Type", 415},
		{"POST", "", "multipart/form-data; boundary=x", "--x--", "Content-Type", 415},
		{"POST", "", "no type at all", "product=2", "Content-Type", 415},
		{"GET", "", "text/plain", "product=2", "Content-Type", 415},
		{"POST", "", "application/json", `{"product":2,"product":3}`, "product", 400},
		{"POST", "?product=2", "application/json", `{"product":2}`, "product", 400},
		{"POST", "?product=2", "application/x-www-form-urlencoded", "product=2", "product", 400},
		{"POST", "", "application/json", `{"prodcut":2}`, "prodcut", 400},
		{"POST", "", "application/json", `{"product":2.5}`, "product", 400},
		{"POST", "", "application/json", `{"product":1e3}`, "product", 400},
		{"POST", "", "application/json", `{"product":null}`, "body", 400},
		{"POST", "", "application/json", `{"product":[1]}`, "body", 400},
		{"POST", "", "application/json", `{"product":{"id":1}}`, "body", 400},
		{"POST", "", "application/json", `[{"product":2}]`, "body", 400},
		{"POST", "", "application/json", `{"product":2`, "body", 400},
		{"POST", "", "application/json", `{"product":2} {"qty":2}`, "body", 400},
		{"POST", "", "application/json", `2`, "body", 400},
		{"POST", "", "application/x-www-form-urlencoded", "product=%zz", "body", 400},
		{"POST", "?product=%zz", "", "", "query", 400},
		{"POST", "?a=1;b=2", "", "", "query", 400},
		{"POST", "?product=9223372036854775807", "", "", "product", 400},
		{"POST", "?product=-1", "", "", "product", 400},
		{"POST", "?product=%D9%A1", "", "", "product", 400}, // an Arabic 1
	} {
		code, p := send(t, s, c.method, "/check/lock"+c.query, c.kind, c.body)
		if code != c.status || p.Parameter != c.parameter || p.Outcome != "bad_request" || p.Allowed == "" {
			t.Errorf("%s %s %s %s: want %d on %s, got %d %+v", c.method, c.query, c.kind, c.body, c.status, c.parameter, code, p)
		}
	}
	if n := none.n.Load(); n > 0 {
		t.Errorf("rejected requests sold %d times", n)
	}
}

// TestBadResets checks that a reset rejects the same bad parameters as a sale. The service has no
// ledger, so a request that reaches the ledger fails.
func TestBadResets(t *testing.T) {
	t.Parallel()
	s := serviceOf(t)
	for _, c := range []struct{ path, body, parameter string }{
		{"/stock/1?count=5&count=7", "", "count"},
		{"/stock/1?count=5&typo=1", "", "typo"},
		{"/stock/1?count=5&new=yes", "", "new"},
		{"/stock/1?count=5", `{"count":5}`, "count"},
		{"/stock/1", `{"count":5,"count":7}`, "count"},
		{"/stock/1", `{"count":5,"typo":1}`, "typo"},
		{"/stock/1", `{}`, "count"},
		{"/stock/1", "", "count"},
		{"/stock/1?count=-1", "", "count"},
		{"/stock/1?count=1000001", "", "count"},
		{"/stock/1?count=many", "", "count"},
		{"/stock/1?count=", "", "count"},
		{"/stock/9223372036854775807?new=true&count=5", "", "id"},
		{"/stock/9007199254740992?new=true&count=5", "", "id"},
		{"/stock/0?count=5", "", "id"},
		{"/stock/one?count=5", "", "id"},
	} {
		code, p := send(t, s, http.MethodPut, c.path, "application/json", c.body)
		if code != http.StatusBadRequest || p.Parameter != c.parameter || p.Allowed == "" {
			t.Errorf("PUT %s %s: want a 400 on %s, got %d %+v", c.path, c.body, c.parameter, code, p)
		}
	}
}

// TestLongInput checks that answers quote only the start of a value. A long body is not fully read.
func TestLongInput(t *testing.T) {
	t.Parallel()
	s := serviceOf(t, &orderRecorder{id: "none"})
	long := strings.Repeat("é", 6000)
	for _, path := range []string{
		"/check/lock?" + long + "=1", "/check/lock?strategy=" + long, "/check/lock?product=" + long,
		"/check/lock?product=1&product=" + long, "/strategies/" + long, "/" + long, "/stock/" + long, "/test/read?name=" + long,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code < 400 || w.Code > 499 || w.Body.Len() > 2000 {
			t.Errorf("GET %.40s…: HTTP %d with %d bytes", path, w.Code, w.Body.Len())
		}
	}
	if code, p := send(t, s, http.MethodPost, "/check/lock", "application/x-www-form-urlencoded", strings.Repeat("x", 9<<20)+"=1"); code != http.StatusRequestEntityTooLarge || len(p.Detail) > 200 {
		t.Errorf("a name of 9 MB: HTTP %d, %.100s", code, p.Detail)
	}
}

// TestSlowBody checks that a body that does not arrive, or has a bad encoding, is rejected.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	none := &orderRecorder{id: "none"}
	server := httptest.NewServer(serviceOf(t, none))
	t.Cleanup(server.Close)
	for rest, want := range map[string]int{
		"Content-Length: 100\r\n\r\n{":              http.StatusRequestTimeout,
		"Transfer-Encoding: chunked\r\n\r\n5\r\n{":  http.StatusRequestTimeout,
		"Transfer-Encoding: chunked\r\n\r\nZ\r\n{}": http.StatusBadRequest,
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprint(conn, "POST /check/lock HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+rest)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want || !answer.Close {
			t.Errorf("%q: HTTP %d, closing: %v", rest, answer.StatusCode, answer.Close)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%q: the connection stays open: %v", rest, err)
		}
	}
	if none.n.Load() > 0 {
		t.Error("sold without the whole body")
	}
}

// TestNoRedirects: a trailing slash must not cause a redirect. A header of the request would set
// the target of that redirect.
func TestNoRedirects(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/check/lock/", nil)
	r.Header.Set("X-Forwarded-Prefix", "/elsewhere")
	w := httptest.NewRecorder()
	serviceOf(t, &orderRecorder{id: "none"}).ServeHTTP(w, r)
	if w.Code != http.StatusNotFound || w.Header().Get("Location") != "" {
		t.Errorf("HTTP %d to %s", w.Code, w.Header().Get("Location"))
	}
}

// TestUnknownRoute checks that a browser gets a page for an unknown address, and a program JSON.
func TestUnknownRoute(t *testing.T) {
	t.Parallel()
	s := serviceOf(t, &orderRecorder{id: "none"})
	for accept, want := range map[string]string{"text/html,*/*": `<a href="/">`, "*/*": `; a sale is GET /check/lock?strategy=redis"`} {
		answer := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/%3Cb%3E", nil)
		r.Header.Set("Accept", accept)
		s.ServeHTTP(answer, r)
		if body := answer.Body.String(); answer.Code != http.StatusNotFound || !strings.Contains(body, want) || strings.Contains(body, "<b>") {
			t.Errorf("%s: %d %s", accept, answer.Code, body)
		}
	}
}

// TestLongWorkAfterBody checks that the time limit of the body does not limit the work after it.
func TestLongWorkAfterBody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(handlers.New(handlers.Config{Replica: "replica-1", Strategies: []locks.Strategy{worker{}}, Log: t.Logf}))
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/check/lock", strings.NewReader(`{"strategy":"worker","hold":"8s"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("8 s of work after the body: %s", answer.Status)
	}
}

// worker is a strategy that does nothing but wait for Order.Work.
type worker struct{}

func (worker) Card() api.Card { return api.Card{ID: "worker"} }

func (worker) Deduct(ctx context.Context, o stock.Order) (stock.Receipt, error) {
	return stock.Receipt{}, locks.Work(ctx, o.Work)
}
