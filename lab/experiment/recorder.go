package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// recorder records the steps of all replicas. When a stream ends, it opens a new one.
// Replicas and lab run on one machine, so they have one clock.
type recorder struct {
	start time.Time
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu        sync.Mutex
	events    map[string][]history.Event // by key
	connected map[string]bool            // by replica's address
	process   map[string]string          // by replica's address: the one that sent the last hello
	lost      int                        // steps that are missing in events, at least
}

func record(client *http.Client, replicas []string, token string) *recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &recorder{start: time.Now(), stop: stop, events: map[string][]history.Event{}, connected: map[string]bool{}, process: map[string]string{}}
	endless := &http.Client{Transport: client.Transport}
	for _, base := range replicas {
		r.connected[base] = false
	}
	for _, base := range replicas {
		r.done.Go(func() {
			for ctx.Err() == nil {
				_ = api.Client{Base: base, Token: token, HTTP: endless}.Follow(ctx, func(kind string, data []byte) { r.take(base, kind, data) })
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

// awaitConnected waits until there is a stream from every replica.
func (r *recorder) awaitConnected(ctx context.Context) error {
	return eventually(ctx, "a stream of events from every replica", func() bool {
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
	case api.StreamHello:
		var hello struct{ Process string }
		err := json.Unmarshal(data, &hello)
		r.mu.Lock()
		defer r.mu.Unlock()
		// A new process has lost nothing. The same process went on without a listener.
		if err != nil || r.process[base] == hello.Process {
			r.lost++
		}
		r.process[base], r.connected[base] = hello.Process, true
	case api.StreamMissed:
		var missed struct{ Steps int }
		_ = json.Unmarshal(data, &missed)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lost += max(1, missed.Steps)
	case api.StreamStep:
		var e struct {
			history.Event
			At time.Time `json:"at"`
		}
		err := json.Unmarshal(data, &e)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.lost++
			return
		}
		e.Event.At = e.At.Sub(r.start)
		r.events[e.Key] = append(r.events[e.Key], e.Event)
	}
}

// lostEvents returns how many steps are missing so far, at least.
func (r *recorder) lostEvents() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// eventsOf returns the steps of a key so far, in the order of time.
func (r *recorder) eventsOf(key string) []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.events[key])
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

// forget drops the steps so far, to free memory once they are judged.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.events)
}
