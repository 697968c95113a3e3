package dash

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"oversell/api"
)

// hearing listens to the steps of all replicas, while there are visitors.
type hearing struct {
	ready chan struct{} // closed when all are heard, or one has been waited for long enough
	stop  context.CancelFunc
}

// deaf is how long a replica is waited for before the visitors go all the same. Then
// their answers tell how it was.
const deaf = 2 * time.Second

func (t *primitivesPage) listen() *hearing {
	ctx, stop := context.WithCancel(t.s.lifetime)
	h := &hearing{ready: make(chan struct{}), stop: stop}
	var greeted sync.WaitGroup
	for _, base := range t.s.Shop.Replicas {
		greeted.Add(1)
		hello := sync.OnceFunc(greeted.Done)
		t.visits.Go(func() {
			defer hello()
			for ctx.Err() == nil {
				t.follow(ctx, base, hello)
				select {
				case <-ctx.Done():
				case <-time.After(redraw):
				}
			}
		})
	}
	t.visits.Go(func() {
		all := make(chan struct{})
		go func() { greeted.Wait(); close(all) }()
		select {
		case <-all:
		case <-time.After(deaf):
		}
		close(h.ready)
		t.redraw(ctx)
	})
	return h
}

// wait returns when the steps of a visitor would be heard.
func (h *hearing) wait(ctx context.Context) {
	select {
	case <-h.ready:
	case <-ctx.Done():
	}
}

// redraw has the lanes grow.
func (t *primitivesPage) redraw(ctx context.Context) {
	clock := time.NewTicker(redraw)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
			t.s.hub.send("try", t.all)
		case <-ctx.Done():
			return
		}
	}
}

// follow reads one stream to its end.
func (t *primitivesPage) follow(ctx context.Context, base string, hello func()) {
	client := api.Client{Base: base, Token: t.s.Shop.Token, HTTP: &http.Client{Transport: t.client.Transport}} // no time-out
	_ = client.Follow(ctx, func(kind string, data []byte) {
		switch kind {
		case api.StreamHello:
			hello()
		case api.StreamStep:
			var e api.StepEvent
			if json.Unmarshal(data, &e) == nil {
				t.hear(e.Owner, string(e.Step), e.Replica)
			}
		}
	})
}
