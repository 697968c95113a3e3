package player

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// recorder records the steps that replicas report, such as "granted", on this machine's clock.
type recorder struct {
	start time.Time
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu        sync.Mutex
	events    map[string][]history.Event // by key
	connected map[string]bool            // by replica's address
	process   map[string]string          // by replica's address: the process that sent the last hello
	lost      int                        // minimum number of steps that are missing in events
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
				r.mu.Lock()
				r.connected[base] = false
				r.mu.Unlock()
				_ = sleep(ctx, 20*time.Millisecond)
			}
		})
	}
	return r
}

// Steps records the steps that the replicas report until stop is called, which returns them in their order. The
// recording begins at start, when each replica is connected.
func Steps(ctx context.Context, replicas []string, token string) (start time.Time, stop func() []history.Event, err error) {
	r := record(api.Direct(), replicas, token)
	if err := r.awaitConnected(ctx); err != nil {
		r.close()
		return start, nil, err
	}
	return r.start, func() (all []history.Event) {
		r.close()
		for key := range r.events {
			all = append(all, r.eventsOf(key)...)
		}
		slices.SortStableFunc(all, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
		return all
	}, nil
}

func (r *recorder) close() {
	r.stop()
	r.done.Wait()
}

func (r *recorder) awaitConnected(ctx context.Context) error {
	return Eventually(ctx, "a stream of events from every replica", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !slices.Contains(slices.Collect(maps.Values(r.connected)), false)
	})
}

func (r *recorder) take(base, kind string, data []byte) {
	var message struct {
		history.Event
		At      time.Time `json:"at"`
		Process string
		Steps   int
	}
	err := json.Unmarshal(data, &message)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case kind == api.StreamHello:
		// A hello begins a stream. A new process has taken no step before its first hello. After a second
		// hello of the same process, its steps between the two streams are lost.
		if err != nil || r.process[base] == message.Process {
			r.lost++
		}
		r.process[base], r.connected[base] = message.Process, true
	case kind == api.StreamMissed:
		r.lost += max(1, message.Steps)
	case kind == api.StreamStep && err != nil:
		r.lost++
	case kind == api.StreamStep:
		message.Event.At = message.At.Sub(r.start)
		r.events[message.Key] = append(r.events[message.Key], message.Event)
	}
}

func (r *recorder) lostEvents() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *recorder) eventsOf(key string) []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.events[key])
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	return events
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.events)
}
