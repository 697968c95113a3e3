package redislock

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// linger is how long a subscription outlives its last waiter: under load the
// next one comes within a millisecond.
const linger = 5 * time.Second

const (
	alive  = 5 * time.Second        // a connection silent for so long is asked whether it lives
	redial = 100 * time.Millisecond // between two attempts to connect again
)

// signals turns messages on a channel into wake-ups: one connection for this
// process, one subscription per channel however many wait for it.
type signals struct {
	client redis.UniversalClient

	telling sync.Mutex // held while the server is told which messages to send

	mu     sync.Mutex
	pubsub *redis.PubSub
	subs   map[string]*subscription
}

// subscription counts what was heard, so that a waiter who looked at the count
// before its try can tell whether the release came in between.
type subscription struct {
	heard   uint64
	changed chan struct{} // closed at the next message
	waiters int
	unused  *time.Timer
}

func newSignals(c redis.UniversalClient) *signals {
	return &signals{client: c, subs: map[string]*subscription{}}
}

// heard is the count to hand to listen; 0 where nobody listens yet.
func (s *signals) heard(channel string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subs[channel]; sub != nil {
		return sub.heard
	}
	return 0
}

// listen returns a channel that is closed at the first message after count.
// Redis confirms a new subscription, also after a reconnect, and that counts
// as a message: whatever was published before it was missed, so look again.
func (s *signals) listen(channel string, count uint64) (wake <-chan struct{}, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subs[channel]
	if sub == nil {
		sub = &subscription{changed: make(chan struct{})}
		s.subs[channel] = sub
		s.subscribe(channel)
	}
	if sub.unused != nil {
		sub.unused.Stop()
	}
	sub.waiters++
	wake = sub.changed
	if sub.heard != count {
		past := make(chan struct{})
		close(past)
		wake = past
	}
	return wake, func() { s.leave(channel, sub) }
}

// subscribe asks for the channel; the answer comes as a message.
func (s *signals) subscribe(channel string) {
	ctx := context.Background()
	if s.pubsub == nil {
		s.pubsub = s.client.Subscribe(ctx)
		go s.receive(s.pubsub)
	}
	go s.tell(s.pubsub, channel)
}

// tell asks for the channel's messages, or for no more of them, whichever is
// wanted by now: two orders that overtake each other say the same.
//
// A failure needs no answer here: the client subscribes again when it has
// reconnected, and until then every waiter has its time-out.
func (s *signals) tell(pubsub *redis.PubSub, channel string) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	wanted := s.subs[channel] != nil
	s.mu.Unlock()
	if wanted {
		_ = pubsub.Subscribe(context.Background(), channel)
	} else {
		_ = pubsub.Unsubscribe(context.Background(), channel)
	}
}

// receive hears until the client is closed. When the connection breaks,
// everybody is woken: a release may be missed, or Redis be gone, and who tries
// finds out. The client dials and subscribes again by itself.
func (s *signals) receive(pubsub *redis.PubSub) {
	ctx := context.Background()
	for silent := false; ; {
		message, err := pubsub.ReceiveTimeout(ctx, alive)
		switch m := message.(type) {
		case *redis.Message:
			s.hear(m.Channel)
		case *redis.Subscription:
			s.hear(m.Channel)
		}
		var late net.Error
		switch {
		case err == nil:
			silent = false
		case errors.Is(err, redis.ErrClosed):
			return
		case errors.As(err, &late) && late.Timeout() && !silent:
			silent = true
			_ = pubsub.Ping(ctx) // an answer, or the next time-out, says whether the line is dead
		default:
			s.hearAll()
			time.Sleep(redial)
		}
	}
}

func (s *signals) hearAll() {
	s.mu.Lock()
	channels := slices.Collect(maps.Keys(s.subs))
	s.mu.Unlock()
	for _, channel := range channels {
		s.hear(channel)
	}
}

func (s *signals) hear(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subs[channel]; sub != nil {
		sub.heard++
		close(sub.changed)
		sub.changed = make(chan struct{})
	}
}

func (s *signals) leave(channel string, sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub.waiters--; sub.waiters > 0 {
		return
	}
	sub.unused = time.AfterFunc(linger, func() { s.drop(channel, sub) })
}

func (s *signals) drop(channel string, sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub.waiters > 0 || s.subs[channel] != sub {
		return
	}
	delete(s.subs, channel)
	go s.tell(s.pubsub, channel)
}
