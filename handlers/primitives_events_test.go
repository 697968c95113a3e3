package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oversell/handlers"
	"oversell/locks"
)

// free is a semaphore that grants every request at once.
type free struct{}

func (free) Acquire(ctx context.Context, r locks.Request, _, _ int) (*locks.Lock, error) {
	return locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: time.Now(), Lease: time.Minute,
		Release: func(context.Context) error { return nil },
	}), nil
}

// TestStepsOfAPrimitive checks that /events has the steps of a request to a primitive.
func TestStepsOfAPrimitive(t *testing.T) {
	t.Parallel()
	s := handlers.New(handlers.Config{
		Replica: "replica-1", Log: t.Logf,
		Primitives: []locks.Primitives{{Backend: "redis", Semaphore: free{}}},
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(s.Close) // runs before server.Close, which waits for the open stream
	get := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	lines := bufio.NewScanner(get("/events").Body)
	if hello := data(t, lines); !strings.Contains(hello, "replica-1") {
		t.Fatalf("the stream begins with %s", hello)
	}
	if answer := get("/test/semaphore?name=tea&hold=1ms&visitor=ann"); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	for _, want := range []string{"asked", "granted", "released"} {
		var e struct{ Replica, Strategy, Step, Key, Owner string }
		if err := json.Unmarshal([]byte(data(t, lines)), &e); err != nil {
			t.Fatal(err)
		}
		if e.Step != want || e.Owner != "ann" || e.Key != "tea" || e.Strategy != "/test/semaphore" || e.Replica != "replica-1" {
			t.Errorf("want %s of ann, got %+v", want, e)
		}
	}
	if answer := get("/test/semaphore?name=tea&hold=1ms"); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	if asked := data(t, lines); !strings.Contains(asked, `"owner":"replica-1-`) {
		t.Errorf("who gives no name goes by its owner's: %s", asked)
	}
}
