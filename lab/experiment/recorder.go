package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"oversell/lab/history"
	"oversell/lab/replica"
)

// recorder listens to the steps of all replicas. A replica that dies is listened to
// again when it is back. Replicas and lab are one machine here, so one clock.
type recorder struct {
	start time.Time
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu        sync.Mutex
	events    map[string][]history.Event // by key
	connected map[string]bool            // by replica's address
	lost      int                        // steps that a replica could not tell us
}

func record(client *http.Client, replicas []string) *recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &recorder{start: time.Now(), stop: stop, events: map[string][]history.Event{}, connected: map[string]bool{}}
	endless := &http.Client{Transport: client.Transport}
	for _, base := range replicas {
		r.connected[base] = false
	}
	for _, base := range replicas {
		r.done.Go(func() {
			for ctx.Err() == nil {
				_ = replica.Replica{Base: base, HTTP: endless}.Follow(ctx, func(kind string, data []byte) { r.take(base, kind, data) })
				r.connect(base, false)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return r
}

func (r *recorder) close() {
	r.stop()
	r.done.Wait()
}

// listening waits until every replica is heard.
func (r *recorder) awaitConnected(ctx context.Context) error {
	return eventually(ctx, "the replicas' steps are heard", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, yes := range r.connected {
			if !yes {
				return false
			}
		}
		return true
	})
}

func (r *recorder) connect(base string, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected[base] = yes
}

func (r *recorder) take(base, kind string, data []byte) {
	switch kind {
	case "hello":
		r.connect(base, true)
	case "missed":
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lost++
	case "step":
		var e struct {
			history.Event
			At time.Time `json:"at"`
		}
		if json.Unmarshal(data, &e) != nil {
			return
		}
		e.Event.At = e.At.Sub(r.start)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events[e.Key] = append(r.events[e.Key], e.Event)
	}
}

// of is what was heard of a key so far, in order.
func (r *recorder) eventsOf(key string) []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.events[key])
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// keys are all that anything was heard of.
func (r *recorder) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.events))
}

// forget makes room: what was recorded so far is judged.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.events)
}
