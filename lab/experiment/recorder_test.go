package experiment

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"oversell/api"
)

// TestLostEventsAreCounted checks three kinds of loss. The replica reports lost steps, a step's
// text cannot be parsed, or a stream is opened again for the same process.
func TestLostEventsAreCounted(t *testing.T) {
	for _, test := range []struct {
		name   string
		events [][2]string
		want   int
	}{
		{"one stream", [][2]string{{"hello", `{"process":"a"}`}, {"step", `{"key":"stock:1"}`}}, 0},
		{"the replica was restarted", [][2]string{{"hello", `{"process":"a"}`}, {"hello", `{"process":"b"}`}}, 0},
		{"the stream broke", [][2]string{{"hello", `{"process":"a"}`}, {"hello", `{"process":"a"}`}}, 1},
		{"the recorder read too slowly", [][2]string{{"hello", `{"process":"a"}`}, {"missed", `{"steps":7}`}}, 7},
		{"half a step", [][2]string{{"hello", `{"process":"a"}`}, {"step", `{"key":`}}, 1},
	} {
		r := record(http.DefaultClient, nil, "")
		for _, e := range test.events {
			r.take("http://replica-1", e[0], []byte(e[1]))
		}
		if got := r.lostEvents(); got != test.want {
			t.Errorf("%s: %d events lost, want %d", test.name, got, test.want)
		}
		r.close()
	}
}

// TestVerdictsWithoutAllEvents checks that a recording with lost events proves neither that a run
// was safe nor that there were two holders.
func TestVerdictsWithoutAllEvents(t *testing.T) {
	for _, test := range []struct {
		verdict   api.Verdict
		invariant string
		want      api.Verdict
	}{
		{api.Safe, "", api.Inconclusive},
		{api.NotShown, "", api.Inconclusive},
		{api.Broken, MutualExclusion, api.Inconclusive},
		{api.Broken, Conservation, api.Broken},
		{api.Stalled, Progress, api.Stalled},
		{api.Inconclusive, "", api.Inconclusive},
	} {
		whole := Result{Verdict: test.verdict, Invariant: test.invariant, Why: api.Text{EN: "a reason"}}
		if got := whole.withLostEvents(0); got.Verdict != test.verdict || got.Why != whole.Why {
			t.Errorf("%s with all events became %s: %s", test.verdict, got.Verdict, got.Why)
		}
		if got := whole.withLostEvents(3); got.Verdict != test.want || !strings.HasPrefix(got.Why.EN, "3 or more events") {
			t.Errorf("%s (%s) became %s, want %s: %s", test.verdict, test.invariant, got.Verdict, test.want, got.Why)
		}
	}
}

// TestBrokenStream breaks a stream of events in the middle of an experiment. The verdict must be
// inconclusive, although all sales were correct.
func TestBrokenStream(t *testing.T) {
	bed := open(t)
	bed.rec.close()
	var mu sync.Mutex
	var streams []net.Conn
	bed.rec = record(&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		mu.Lock()
		defer mu.Unlock()
		streams = append(streams, c)
		return c, err
	}}}, bed.Rig.Addresses().Replicas, bed.Rig.Addresses().Token)
	if err := bed.rec.awaitConnected(t.Context()); err != nil {
		t.Fatal(err)
	}
	var store ResultStore
	done := make(chan error, 1)
	go func() {
		done <- Perform(t.Context(), bed, Plan{Hazards: []api.Hazard{"race"}, Strategies: []string{"for-update"}}, &store, silent{})
	}()
	if err := eventually(t.Context(), "the experiment has begun", func() bool { return len(bed.rec.keys()) > 0 }); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	for _, c := range streams {
		if c != nil {
			_ = c.Close()
		}
	}
	mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r := store.Results()[0]; r.Verdict != api.Inconclusive || !strings.Contains(r.Why.EN, "events are missing") {
		t.Errorf("%s: %s; want %s", r.Verdict, r.Why, api.Inconclusive)
	}
}

// keys returns the lock keys of all recorded steps.
func (r *recorder) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.events))
}
