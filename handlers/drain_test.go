package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// waiter is a strategy whose requests wait for a lock until they are cancelled.
type waiter struct{}

func (waiter) Card() api.Card { return api.Card{ID: "waiter", Stock: "none"} }

func (waiter) Deduct(ctx context.Context, o stock.Order) (stock.Receipt, error) {
	<-ctx.Done()
	return stock.Receipt{}, locks.NotAcquired(ctx, "stock:1", o.Wait)
}

func drained(t *testing.T) *Service {
	t.Helper()
	s := New(Config{Replica: "replica-1", Strategies: []locks.Strategy{waiter{}}, Log: t.Logf})
	s.Drain(0)
	return s
}

// TestDrain checks the answers of a replica that stops. Every answer closes its connection.
func TestDrain(t *testing.T) {
	s := drained(t)
	for _, c := range []struct {
		path, retry string
		want        int
	}{
		{"/readyz", "", http.StatusServiceUnavailable},
		{"/healthz", "", http.StatusOK},
		{"/strategies", "", http.StatusOK},
		{"/strategies", "502", http.StatusBadGateway},
		{"/check/lock?strategy=waiter", "502", http.StatusBadGateway},
		{"/check/lock?strategy=unknown", "", http.StatusBadRequest},
		{"/check/lock?strategy=unknown", "503", http.StatusBadRequest},       // no such contract
		{"/test/unlock?owner=a&strategy=none", "502", http.StatusBadRequest}, // served, and this one is wrong
	} {
		answer := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
		r.Header.Set("X-Retry-Status", c.retry)
		s.ServeHTTP(answer, r)
		if answer.Code != c.want || answer.Header().Get("Connection") != "close" {
			t.Errorf("%s with %q: %d %s, Connection %q, want %d and close", c.path, c.retry, answer.Code, answer.Body, answer.Header().Get("Connection"), c.want)
		}
	}
}

// TestDrainAbandoned cancels a request that waits for a lock while the replica stops, as a shutdown
// does after its time limit. It took nothing, so the balancer must send it to another replica.
func TestDrainAbandoned(t *testing.T) {
	s := New(Config{Replica: "replica-1", Strategies: []locks.Strategy{waiter{}}, Log: t.Logf})
	ctx, abandon := context.WithCancel(t.Context())
	answer, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/check/lock?strategy=waiter", nil)
		r.Header.Set("X-Retry-Status", "502")
		s.ServeHTTP(answer, r)
	}()
	for s.checks.selling.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Drain(0)
	abandon()
	<-done
	var p api.Problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if answer.Code != http.StatusBadGateway || !p.Outcome.TookNothing() || answer.Header().Get("Connection") != "close" {
		t.Errorf("%d %+v %v", answer.Code, p, answer.Header())
	}
}

// TestDrainLength checks when Drain returns: nginx must not be about to try this replica again.
func TestDrainLength(t *testing.T) {
	const never = -1
	for name, c := range map[string]struct{ drain, rejected, want time.Duration }{
		"no drain":                     {0, never, 0},
		"no request":                   {time.Second, never, time.Second},
		"a request long ago":           {time.Second, 100 * time.Millisecond, time.Second + retryAfter},
		"a request a moment ago":       {time.Second, 700 * time.Millisecond, time.Second},
		"a request just now":           {time.Second, 950 * time.Millisecond, 1150 * time.Millisecond},
		"nginx has tried it once more": {time.Second, 1900 * time.Millisecond, 2100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Service
				if c.rejected != never {
					// Before the first tick after that time, which no real clock hits exactly.
					time.AfterFunc(c.rejected-time.Microsecond, func() { s.drain.rejected.Store(time.Now().UnixNano()) })
				}
				if c.rejected > c.drain {
					s.drain.rejected.Store(1)
				}
				began := time.Now()
				s.Drain(c.drain)
				if took := time.Since(began); took != c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestCloseTwice checks that a shutdown that is repeated may close the service again.
func TestCloseTwice(t *testing.T) {
	s := drained(t)
	s.Close()
	s.Close()
}
