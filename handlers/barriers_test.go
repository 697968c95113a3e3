package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// These tests check the barriers and counters of the tutorial (4.6.6 and 4.6.7), on three replicas.

// everywhere sends one request through each replica, in the background. path returns the path of
// the request for the replica with this number.
func throughEach(ctx context.Context, path func(replica int) string) []<-chan answer {
	var promised []<-chan answer
	for i, base := range testLab.Addresses().Replicas {
		promised = append(promised, begin(ctx, base, path(i)))
	}
	return promised
}

func TestBarrier(t *testing.T) {
	restock(t, 10)
	pass(t, "/test/barrier/wait?wait=0s") // no barrier is set
	if r := pass(t, "/test/barrier/set"); r.Outcome != "set" {
		t.Errorf("set: %+v", r)
	}
	if r := pass(t, "/test/barrier/set"); r.Outcome != "was_set" {
		t.Errorf("set again: %+v", r)
	}
	waiting := throughEach(t.Context(), func(int) string { return "/test/barrier/wait?wait=60s" })
	for range 3 {
		refused(t, "/test/barrier/wait?wait=100ms", http.StatusServiceUnavailable, "not_acquired")
	}
	if r := pass(t, "/test/barrier/remove"); r.Outcome != "removed" {
		t.Errorf("remove: %+v", r)
	}
	for i, promised := range waiting {
		if r := granted(t, fmt.Sprintf("waiter %d", i+1), promised); r.Outcome != "passed" {
			t.Errorf("waiter %d: %+v", i+1, r)
		}
	}
	if r := pass(t, "/test/barrier/remove"); r.Outcome != "was_not_set" {
		t.Errorf("remove again: %+v", r)
	}
}

func TestDoubleBarrier(t *testing.T) {
	restock(t, 10)
	enter := func(i int) string {
		return fmt.Sprintf("/test/double-barrier/enter?members=3&owner=m%d&wait=60s", i)
	}
	// One of three members waits at the barrier, gives up, and must leave no trace there. Otherwise
	// the next two members could enter without a third.
	refused(t, "/test/double-barrier/enter?members=3&owner=quitter&wait=300ms", http.StatusServiceUnavailable, "not_acquired")
	first := begin(t.Context(), testLab.Addresses().Replicas[0], enter(0))
	second := begin(t.Context(), testLab.Addresses().Replicas[1], enter(1))
	select {
	case a := <-first:
		t.Fatalf("one entered without the third: %+v, %v", a.reply, a.err)
	case a := <-second:
		t.Fatalf("one entered without the third: %+v, %v", a.reply, a.err)
	default:
	}
	third := begin(t.Context(), testLab.Addresses().Replicas[2], enter(2))
	for _, promised := range []<-chan answer{first, second, third} {
		if r := granted(t, "a member", promised); r.Outcome != "entered" {
			t.Errorf("enter: %+v", r)
		}
	}
	// Each member leaves through another replica than the replica through which it entered.
	leaving := throughEach(t.Context(), func(i int) string {
		return fmt.Sprintf("/test/double-barrier/leave?owner=m%d&wait=60s", (i+1)%3)
	})
	for _, promised := range leaving {
		if r := granted(t, "a member", promised); r.Outcome != "left" {
			t.Errorf("leave: %+v", r)
		}
	}
}

func TestCounter(t *testing.T) {
	restock(t, 10)
	var promised []<-chan answer
	for range 10 {
		promised = append(promised, throughEach(t.Context(), func(int) string { return "/test/counter?op=increment" })...)
	}
	for _, p := range promised {
		if r := granted(t, "increment", p); !r.Succeeded || r.After != r.Before+1 {
			t.Errorf("increment: %+v", r)
		}
	}
	now := pass(t, "/test/counter")
	if now.Value != 30 || now.Outcome != "read" {
		t.Errorf("after 30 increments: %+v", now)
	}
	for _, c := range []struct {
		query     string
		succeeded bool
		after     int64
	}{
		{"op=add&value=12", true, 42},
		{"op=subtract&value=2", true, 40},
		{"op=decrement", true, 39},
		{"op=compare-and-set&expect=40&value=7", false, 39},
		{"op=compare-and-set&expect=39&value=7", true, 7},
		{"op=try-set&value=-5", true, -5},
		{"op=force-set&value=9223372036854775807", true, 9223372036854775807},
		{"op=increment", false, 9223372036854775807},
		{"op=force-set&value=1", true, 1},
	} {
		r := pass(t, "/test/counter?"+c.query)
		if r.Succeeded != c.succeeded || c.succeeded != (r.Outcome == "changed") || r.Version <= 0 {
			t.Errorf("%s: %+v", c.query, r)
		}
		if v := pass(t, "/test/counter?op=get").Value; v != c.after {
			t.Errorf("%s: the value is %d, want %d", c.query, v, c.after)
		}
	}
	if r := pass(t, "/test/counter?op=get"); r.Version <= now.Version {
		t.Errorf("the version fell from %d to %d", now.Version, r.Version)
	}
}

// TestCounterEvents checks that each stream starts with the counter's current value, and then has
// the changes. This must hold even if the test does not read one of the other streams.
func TestCounterEvents(t *testing.T) {
	restock(t, 10)
	ctx, hangUp := context.WithTimeout(t.Context(), time.Minute)
	defer hangUp()
	listen := func(base string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/test/counter/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	deaf := listen(testLab.Addresses().Replicas[0])
	defer func() { _ = deaf.Body.Close() }()
	for _, base := range append(testLab.Addresses().Replicas, testLab.Addresses().Target) {
		stream := listen(base)
		defer func() { _ = stream.Body.Close() }()
		lines := bufio.NewScanner(stream.Body)
		before := next(t, lines)
		pass(t, "/test/counter?op=add&value=3")
		for at := before; at.Value != before.Value+3; {
			later := next(t, lines)
			if later.Version <= at.Version {
				t.Fatalf("%s: version %d after %d", base, later.Version, at.Version)
			}
			at = later
		}
	}
}

type tally struct{ Value, Version int64 }

// next returns the next event of the stream of a counter's changes.
func next(t *testing.T, lines *bufio.Scanner) (c tally) {
	t.Helper()
	must(t, json.Unmarshal([]byte(data(t, lines)), &c))
	return c
}
