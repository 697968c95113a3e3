package handlers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/handlers"
	"oversell/locks"
	"oversell/stock"
)

// steps is a strategy that only reports steps. It sells nothing.
type steps struct{}

func (steps) Card() api.Card { return api.Card{ID: "steps"} }

func (steps) Deduct(ctx context.Context, o stock.Order) (stock.Receipt, error) {
	for _, s := range []api.Step{api.Granted, api.Read, api.Written} {
		stock.Sent(ctx, func() string { return "send before " + string(s) })
		locks.Trace(ctx, s, api.Key(o.Product), o.Owner, 7)
	}
	stock.Sent(ctx, func() string { return "send at the end" })
	return stock.Receipt{}, nil
}

const labToken = "token"

func labService(t *testing.T, lab bool) *handlers.Service {
	t.Helper()
	s := handlers.New(handlers.Config{Replica: "replica-1", Strategies: []locks.Strategy{steps{}}, Lab: lab, Token: labToken, Log: t.Logf})
	t.Cleanup(s.Close)
	return s
}

// state is the answer of the failpoint routes.
type state struct {
	Armed   []struct{ ID, Times int }
	Stopped []struct {
		Owner, Key, Step string
		Fence            int64
		Commands         []string
	}
	Senders []struct {
		Owner, Key string
		Commands   []string
	}
	Parameter string
}

func call(t *testing.T, s http.Handler, method, path, body, token string) (int, state) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Lab-Token", token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var got state
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
	return w.Code, got
}

// TestLabRoutes checks that failpoints, resets, and the lists of buyers need --lab and the token.
func TestLabRoutes(t *testing.T) {
	const good = `{"strategy":"steps","product":1,"step":"read"}`
	for _, r := range []struct {
		method, path string
		closed       int // the status without --lab
	}{
		{"GET", "/lab/failpoints", http.StatusNotFound},
		{"POST", "/lab/failpoints", http.StatusNotFound},
		{"DELETE", "/lab/failpoints", http.StatusNotFound},
		{"POST", "/lab/stopped/somebody/go", http.StatusNotFound},
		{"PUT", "/stock/1?count=9", http.StatusForbidden},
		{"PUT", "/coupons/1?count=5", http.StatusForbidden},
		{"PUT", "/orders/1?amount=500", http.StatusForbidden},
		{"PUT", "/shows/1?tickets=5", http.StatusForbidden},
		{"GET", "/coupons/1/orders", http.StatusForbidden},
	} {
		if code, _ := call(t, labService(t, false), r.method, r.path, good, labToken); code != r.closed {
			t.Errorf("%s %s without --lab: %d", r.method, r.path, code)
		}
		for _, token := range []string{"", "guess", labToken + "x"} {
			if code, _ := call(t, labService(t, true), r.method, r.path, good, token); code != http.StatusForbidden {
				t.Errorf("%s %s with token %q: %d", r.method, r.path, token, code)
			}
		}
	}
}

// TestBadFailpoints checks that a failpoint with bad parameters is not armed.
func TestBadFailpoints(t *testing.T) {
	s := labService(t, true)
	for body, parameter := range map[string]string{
		``:                                    "body",
		`[]`:                                  "body",
		`{"strategy":"steps","produkt":1}`:    "body",
		`{"strategy":"nonsense","product":1}`: "strategy",
		`{"strategy":"steps"}`:                "product",
		`{"strategy":"steps","product":-1}`:   "product",
		`{"strategy":"steps","product":1,"do":"explode"}`:                            "do",
		`{"strategy":"steps","product":1,"times":0}`:                                 "times",
		`{"key":"order:7","strategy":"steps"}`:                                       "key",
		`{"key":"order:7","product":1}`:                                              "key",
		`{"key":"` + strings.Repeat("x", 300) + `"}`:                                 "key",
		`{"strategy":"steps","product":1,"step":"` + strings.Repeat("x", 100) + `"}`: "step",
	} {
		if code, got := call(t, s, "POST", "/lab/failpoints", body, labToken); code != http.StatusBadRequest || got.Parameter != parameter {
			t.Errorf("%s: %d, %q; want a 400 on %q", body, code, got.Parameter, parameter)
		}
	}
	if code, got := call(t, s, "GET", "/lab/failpoints", "", labToken); code != http.StatusOK || len(got.Armed)+len(got.Stopped) != 0 {
		t.Errorf("after bad input: %d, %+v", code, got)
	}
	if code, _ := call(t, s, "POST", "/lab/stopped/nobody/go", "", labToken); code != http.StatusNotFound {
		t.Errorf("resume an unknown owner: %d", code)
	}
}

// TestFailpoint checks that the first request is paused at the failpoint's step until it is
// resumed. The second request must not be paused.
func TestFailpoint(t *testing.T) {
	s := labService(t, true)
	buy := func() chan int {
		done := make(chan int, 1)
		go func() {
			code, _ := call(t, s, "GET", "/check/lock?strategy=steps&product=3", "", "")
			done <- code
		}()
		return done
	}
	stopped := func(n int) state {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
			if _, got := call(t, s, "GET", "/lab/failpoints", "", labToken); len(got.Stopped) == n {
				return got
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d requests were not paused", n)
			}
		}
	}
	if code, _ := call(t, s, "POST", "/lab/failpoints", `{"strategy":"steps","product":3,"step":"read"}`, labToken); code != http.StatusOK {
		t.Fatal(code)
	}
	first := buy()
	got := stopped(1)
	if p := got.Stopped[0]; p.Step != "read" || p.Key != "stock:3" || p.Fence != 7 || len(got.Armed) != 0 {
		t.Errorf("%+v", got)
	}
	if code := <-buy(); code != http.StatusOK { // the failpoint acts only once
		t.Errorf("the second: %d", code)
	}
	if len(first) > 0 {
		t.Error("the first request continued before it was resumed")
	}
	if code, _ := call(t, s, "POST", "/lab/stopped/"+got.Stopped[0].Owner+"/go", "", labToken); code != http.StatusOK {
		t.Errorf("let go: %d", code)
	}
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	// With times 100, all requests are paused at each step, until the failpoints are cleared.
	if code, _ := call(t, s, "POST", "/lab/failpoints", `{"strategy":"steps","product":3,"times":100}`, labToken); code != http.StatusOK {
		t.Fatal(code)
	}
	a, b := buy(), buy()
	for _, p := range stopped(2).Stopped {
		if p.Step != "granted" {
			t.Errorf("paused at %s", p.Step)
		}
	}
	if code, got := call(t, s, "DELETE", "/lab/failpoints", "", labToken); code != http.StatusOK || len(got.Armed)+len(got.Stopped) != 0 {
		t.Errorf("cleared: %d, %+v", code, got)
	}
	if <-a != http.StatusOK || <-b != http.StatusOK {
		t.Error("not all requests were resumed")
	}
	// A failpoint with a key acts on every strategy.
	if code, _ := call(t, s, "POST", "/lab/failpoints", `{"key":"stock:3","step":"read"}`, labToken); code != http.StatusOK {
		t.Fatal(code)
	}
	first = buy()
	if p := stopped(1).Stopped[0]; p.Key != "stock:3" || p.Step != "read" {
		t.Errorf("by its key: %+v", p)
	}
	call(t, s, "DELETE", "/lab/failpoints", "", labToken)
	if code := <-first; code != http.StatusOK {
		t.Errorf("by its key: %d", code)
	}
}

// TestFailpointCommands checks that the state has each request's commands since its previous pause.
func TestFailpointCommands(t *testing.T) {
	s := labService(t, true)
	if code, _ := call(t, s, "POST", "/lab/failpoints", `{"strategy":"steps","product":3,"times":100,"commands":true}`, labToken); code != http.StatusOK {
		t.Fatal(code)
	}
	done := make(chan int, 1)
	go func() {
		code, _ := call(t, s, "GET", "/check/lock?strategy=steps&product=3", "", "")
		done <- code
	}()
	for _, step := range []string{"granted", "read", "written"} {
		var got state
		for deadline := time.Now().Add(5 * time.Minute); len(got.Stopped) == 0 || got.Stopped[0].Step != step; time.Sleep(time.Millisecond) {
			if _, got = call(t, s, "GET", "/lab/failpoints", "", labToken); time.Now().After(deadline) {
				t.Fatalf("never paused at %s: %+v", step, got)
			}
		}
		if sent := got.Stopped[0].Commands; len(sent) != 1 || sent[0] != "send before "+step || len(got.Senders) != 0 {
			t.Errorf("at %s: %+v", step, got)
		}
		call(t, s, "POST", "/lab/stopped/"+got.Stopped[0].Owner+"/go", "", labToken)
	}
	<-done
	_, got := call(t, s, "GET", "/lab/failpoints", "", labToken)
	if len(got.Senders) != 1 || got.Senders[0].Key != "stock:3" || strings.Join(got.Senders[0].Commands, "|") != "send at the end" {
		t.Errorf("at the end: %+v", got)
	}
	if _, got := call(t, s, "DELETE", "/lab/failpoints", "", labToken); len(got.Senders) != 0 {
		t.Errorf("cleared: %+v", got)
	}
	// A failpoint that does not ask for commands records none.
	call(t, s, "POST", "/lab/failpoints", `{"strategy":"steps","product":3,"step":"nonesuch"}`, labToken)
	call(t, s, "GET", "/check/lock?strategy=steps&product=3", "", "")
	if _, got := call(t, s, "GET", "/lab/failpoints", "", labToken); len(got.Senders) != 0 {
		t.Errorf("without commands: %+v", got)
	}
}

// named sells to each request, or fails, and stores the owner of the last one.
type named struct {
	owner *string
	err   error
}

func (named) Card() api.Card { return api.Card{ID: "named"} }

func (n named) Deduct(_ context.Context, o stock.Order) (stock.Receipt, error) {
	*n.owner = o.Owner
	return stock.Receipt{}, n.err
}

// TestOwner checks that each answer names the owner of its request, whether it sold or not.
func TestOwner(t *testing.T) {
	t.Parallel()
	for status, err := range map[int]error{http.StatusOK: nil, http.StatusConflict: stock.ErrSoldOut, http.StatusServiceUnavailable: locks.ErrNotAcquired} {
		var owner string
		s := handlers.New(handlers.Config{Replica: "replica-1", Strategies: []locks.Strategy{named{&owner, err}}, Log: t.Logf})
		t.Cleanup(s.Close)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/check/lock?strategy=named", nil))
		var got struct{ Owner string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status || got.Owner == "" || got.Owner != owner {
			t.Errorf("status %d with the owner %q, %v; want %d with %q", w.Code, got.Owner, err, status, owner)
		}
	}
}
