package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oversell/handlers"
	"oversell/locks"
)

// newService returns a service with two backends. As in production, each lacks some primitives. A call of a primitive
// panics, which is answered with 500: bad parameters must be rejected earlier. Other tests run the primitives on real
// servers.
func newService(t *testing.T) *handlers.Service {
	t.Helper()
	readWrite, semaphore := struct{ locks.ReadWriteLocker }{}, struct{ locks.Semaphore }{}
	return handlers.New(handlers.Config{
		Replica: "replica-1",
		Primitives: []locks.Primitives{
			{Backend: "redis", ReadWrite: readWrite, Semaphore: semaphore, Latch: struct{ locks.Latch }{}},
			{
				Backend: "zk", ReadWrite: readWrite, Semaphore: semaphore, Barrier: struct{ locks.Barrier }{},
				DoubleBarrier: struct{ locks.DoubleBarrier }{}, Counter: struct{ locks.Counter }{},
			},
		},
		Log: t.Logf,
	})
}

type problem struct {
	Title, Detail, Outcome, Replica, Parameter, Allowed string
	Status                                              int
}

// request sends a GET with the parameters in the query, or a POST with them in a form.
func request(t *testing.T, s *handlers.Service, method, path, query string) (*httptest.ResponseRecorder, problem) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path+"?"+query, nil)
	if method == http.MethodPost {
		r = httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(query))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	var p problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Errorf("%s %s?%s: %v in %s", method, path, query, err, answer.Body)
	}
	return answer, p
}

type refusal struct{ path, query, parameter, allowed string }

var refusals = []refusal{
	{"read", "hold=-1s", "hold", "from 0s to 1m0s"},
	{"read", "hold=61s", "hold", "from 0s to 1m0s"},
	{"read", "wait=61s", "wait", "from 0s to 1m0s"},
	{"read", "lease=1ms", "lease", "from 100ms"},
	{"read", "backend=zk&lease=5s", "lease", "redis"},
	{"read", "then=read", "then", "write"},
	{"read", "then=", "then", "write"},
	{"read", "permits=3", "permits", "backend, name, hold, wait, lease, then"},
	{"write", "hold=5", "hold", "such as 500ms"},
	{"write", "wait=soon", "wait", "duration"},
	{"write", "lease=2m", "lease", "to 1m0s"},
	{"write", "backend=zk&lease=5s", "lease", "redis"},
	{"write", "then=write", "then", "read"},
	{"write", "owner=me", "owner", "backend, name, hold, wait, lease, then, downgrade"},
	{"semaphore", "permits=0", "permits", "from 1 to 1000"},
	{"semaphore", "permits=1001", "permits", "from 1 to 1000"},
	{"semaphore", "qty=0", "qty", "from 1 to 3"},
	{"semaphore", "qty=4", "qty", "from 1 to 3"},
	{"semaphore", "permits=2&qty=3", "qty", "from 1 to 2"},
	{"semaphore", "permits=three", "permits", "whole number"},
	{"semaphore", "hold=1h", "hold", "from 0s to 1m0s"},
	{"semaphore", "wait=-1ms", "wait", "from 0s"},
	{"semaphore", "backend=zk&lease=5s", "lease", "redis"},
	{"semaphore", "then=read", "then", "backend, name, permits, qty, hold, wait, lease"},
	{"latch", "count=0", "count", "from 1 to 1000000"},
	{"latch", "count=1000001", "count", "from 1 to 1000000"},
	{"latch", "wait=1m1s", "wait", "from 0s to 1m0s"},
	{"latch", "backend=zk", "backend", "redis"},
	{"latch", "hold=1s", "hold", "backend, name, count, wait"},
	{"countdown", "count=-6", "count", "from 1 to 1000000"},
	{"countdown", "count=1.5", "count", "whole number"},
	{"countdown", "backend=zk", "backend", "redis"},
	{"countdown", "wait=1s", "wait", "backend, name, count"},
	{"barrier/set", "backend=redis", "backend", "zk"},
	{"barrier/set", "wait=1s", "wait", "backend, name"},
	{"barrier/wait", "backend=redis", "backend", "zk"},
	{"barrier/wait", "wait=1", "wait", "such as 500ms"},
	{"barrier/remove", "backend=redis", "backend", "zk"},
	{"barrier/remove", "wait=1s", "wait", "backend, name"},
	{"double-barrier/enter", "", "owner", "1 to 64"},
	{"double-barrier/enter", "owner=", "owner", "1 to 64"},
	{"double-barrier/enter", "owner=a/b", "owner", "1 to 64 letters"},
	{"double-barrier/enter", "owner=a&members=0", "members", "from 1 to 1000"},
	{"double-barrier/enter", "owner=a&members=1001", "members", "from 1 to 1000"},
	{"double-barrier/enter", "owner=a&wait=90s", "wait", "from 0s to 1m0s"},
	{"double-barrier/enter", "owner=a&backend=redis", "backend", "zk"},
	{"double-barrier/leave", "", "owner", "1 to 64"},
	{"double-barrier/leave", "owner=a%20b", "owner", "1 to 64"},
	{"double-barrier/leave", "owner=a&members=3", "members", "backend, name, owner, wait"},
	{"double-barrier/leave", "owner=a&wait=x", "wait", "duration"},
	{"counter", "backend=redis", "backend", "zk"},
	{"counter", "op=double", "op", "get, increment, decrement, add, subtract, try-set, force-set, compare-and-set"},
	{"counter", "op=", "op", "get, increment"},
	{"counter", "value=1", "value", "add, subtract, try-set, force-set, compare-and-set"},
	{"counter", "op=increment&value=2", "value", "add, subtract"},
	{"counter", "op=decrement&expect=2", "expect", "compare-and-set"},
	{"counter", "op=add", "value", "given"},
	{"counter", "op=add&value=9223372036854775808", "value", "to 9223372036854775807"},
	{"counter", "op=subtract&value=-9223372036854775808", "value", "from -9223372036854775807"},
	{"counter", "op=try-set", "value", "given"},
	{"counter", "op=try-set&value=1&wait=1s", "wait", "increment, decrement, add, subtract"},
	{"counter", "op=force-set&value=x", "value", "whole number"},
	{"counter", "op=force-set&value=1&expect=1", "expect", "compare-and-set"},
	{"counter", "op=compare-and-set&value=1", "expect", "given"},
	{"counter", "op=compare-and-set&expect=1", "value", "given"},
	{"write", "then=read&downgrade=yes", "downgrade", "true or false"},
	{"read", "downgrade=true", "downgrade", "left out"},
	{"write", "downgrade=true", "downgrade", "then=read"},
	{"semaphore", "backend=zk&lease=5s", "lease", "redis"},
	{"counter", "op=compare-version&value=1", "version", "given"},
	{"counter", "op=compare-and-set&value=1&expect=1&version=1", "version", "compare-version"},
	{"counter", "op=compare-version&value=1&version=1&expect=1", "expect", "compare-and-set"},
	{"counter", "op=increment&wait=2m", "wait", "from 0s to 1m0s"},
	{"counter/events", "backend=redis", "backend", "zk"},
	{"read/lock", "", "owner", "1 to 64"},
	{"read/lock", "owner=a,b", "owner", "1 to 64"},
	{"read/lock", "owner=a&hold=1s", "hold", "backend, name, owner, wait, lease"},
	{"write/lock", "owner=" + strings.Repeat("x", 65), "owner", "1 to 64"},
	{"write/unlock", "owner=a&wait=1s", "wait", "backend, name, owner"},
	{"semaphore/acquire", "permits=2&qty=3", "qty", "from 1 to 2"},
	{"semaphore/release", "owner=a&qty=1", "qty", "backend, name, owner"},
	{"counter/events", "wait=1s", "wait", "backend, name"},
}

var routes = []string{
	"read", "write", "semaphore", "latch", "countdown", "barrier/set", "barrier/wait", "barrier/remove",
	"double-barrier/enter", "double-barrier/leave", "counter", "counter/events",
	"read/lock", "read/unlock", "write/lock", "write/unlock", "semaphore/acquire", "semaphore/release",
}

// everywhere returns the bad requests that every route must reject.
func everywhere() []refusal {
	var all []refusal
	for _, route := range routes {
		for _, r := range []refusal{
			{"", "backend=mysql", "backend", "one that has this: "},
			{"", "backend=", "backend", "one that has this: "},
			{"", "backend=zk&backend=redis", "backend", "once"},
			{"", "name=", "name", "1 to 64"},
			{"", "name=a/b", "name", "1 to 64 letters, digits, dots, _ or -"},
			{"", "name=..", "name", "not only . or .."},
			{"", "name=%E9%94%81", "name", "1 to 64"},
			{"", "name=" + strings.Repeat("x", 65), "name", "1 to 64"},
			{"", "name=a&name=b", "name", "once"},
			{"", "nmae=a", "nmae", "the parameters are backend, name"},
			{"", "strategy=redis", "strategy", "left out"},
			{"", "visitor=a%20b", "visitor", "1 to 64 letters"},
		} {
			r.path = route
			all = append(all, r)
		}
	}
	return all
}

// TestBadPrimitiveInputInChinese checks that each bad request is answered in Chinese, if the request
// prefers it.
func TestBadPrimitiveInputInChinese(t *testing.T) {
	t.Parallel()
	s := newService(t)
	chinese := regexp.MustCompile(`\p{Han}`)
	for _, c := range append(everywhere(), refusals...) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/test/"+c.path+"?"+c.query, nil)
		r.Header.Set("Accept-Language", "zh-CN")
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, r)
		var p problem
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{p.Title, p.Detail, p.Allowed} {
			if !chinese.MatchString(text) {
				t.Errorf("%s?%s: %q is not in Chinese", c.path, c.query, text)
			}
		}
	}
}

func TestBadPrimitiveInput(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, c := range append(everywhere(), refusals...) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			answer, p := request(t, s, method, "/test/"+c.path, c.query)
			if answer.Code != http.StatusBadRequest || p.Outcome != "bad_request" || p.Parameter != c.parameter ||
				!strings.Contains(p.Allowed, c.allowed) || !strings.Contains(p.Detail, c.parameter) {
				t.Errorf("%s %s?%s: want a 400 on %s that allows %q, got %d %+v", method, c.path, c.query, c.parameter, c.allowed, answer.Code, p)
			}
			if kind := answer.Header().Get("Content-Type"); kind != "application/problem+json" || p.Replica != "replica-1" {
				t.Errorf("%s %s?%s: %s from %q", method, c.path, c.query, kind, p.Replica)
			}
		}
	}
	for _, route := range routes {
		if answer, _ := request(t, s, http.MethodDelete, "/test/"+route, ""); answer.Code != http.StatusMethodNotAllowed {
			t.Errorf("DELETE %s: %d", route, answer.Code)
		}
	}
}

// TestNoBackendHasIt checks that a replica without a primitive rejects requests for it.
func TestNoBackendHasIt(t *testing.T) {
	t.Parallel()
	s := handlers.New(handlers.Config{Replica: "bare", Log: t.Logf})
	for _, route := range routes {
		if answer, p := request(t, s, http.MethodGet, "/test/"+route, ""); answer.Code != http.StatusBadRequest || p.Parameter != "backend" {
			t.Errorf("%s: %d %+v", route, answer.Code, p)
		}
	}
}
