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

	"oversell/locks"
)

const (
	// pingAfter is the silence after which a PING checks the connection.
	pingAfter = 5 * time.Second
	// redialPause is the pause between two attempts to connect again.
	redialPause = 100 * time.Millisecond
	// linger is enough for a waiter of the same key to come soon.
	linger = 5 * time.Second
)

// notifier wakes waiters when a message arrives on their channel. A process has one
// connection for it, and one subscription for each channel however many wait.
type notifier struct {
	client redis.UniversalClient
	linger time.Duration // of a subscription after its last waiter has left

	ordering sync.Mutex // held while a SUBSCRIBE or UNSUBSCRIBE is sent

	mu       sync.Mutex
	pubsub   *redis.PubSub
	subs     map[string]*subscription
	messages uint64 // on all channels
}

// subscription has the number of its last message. A waiter compares it with the one from
// before its try: a message in between is not missed.
type subscription struct {
	sequence  uint64        // 0: none yet, not even the confirmation
	confirmed uint64        // the number of the last confirmation
	changed   chan struct{} // closed at the next message
	waiters   int
	unused    *time.Timer
}

func newNotifier(c redis.UniversalClient, linger time.Duration) *notifier {
	return &notifier{client: c, linger: linger, subs: map[string]*subscription{}}
}

// sequence returns the number of the channel's last message; 0 if there was none, or there
// is no subscription.
func (n *notifier) sequence(channel string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub := n.subs[channel]; sub != nil {
		return sub.sequence
	}
	return 0
}

// confirmation returns the number of the message that confirmed the subscription.
func (n *notifier) confirmation(channel string) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub := n.subs[channel]; sub != nil {
		return sub.confirmed
	}
	return 0
}

// wait returns at the first message after sequence, or when limit has passed. It returns
// ErrNotAcquired when r.Wait has passed since began, or ctx ends.
func (n *notifier) wait(ctx context.Context, r locks.Request, began time.Time, channel string, sequence uint64, limit time.Duration) error {
	if time.Since(began) >= r.Wait { // a single try needs no subscription
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	wake, leave := n.listen(channel, sequence)
	defer leave()
	return locks.Await(ctx, r, began, limit, wake)
}

// listen returns a channel that is closed at the first message after sequence.
//
// Redis confirms each subscription, also after a reconnect, and the confirmation counts as
// a message: whatever was published before it was missed, so the waiter must look again.
func (n *notifier) listen(channel string, sequence uint64) (wake <-chan struct{}, leave func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sub := n.subs[channel]
	if sub == nil {
		sub = &subscription{changed: make(chan struct{})}
		n.subs[channel] = sub
		if n.pubsub == nil {
			n.pubsub = n.client.Subscribe(context.Background())
			go n.receive(n.pubsub)
		}
		go n.order(n.pubsub, channel)
	}
	if sub.unused != nil {
		sub.unused.Stop()
	}
	sub.waiters++
	wake = sub.changed
	if sub.sequence != sequence {
		past := make(chan struct{})
		close(past)
		wake = past
	}
	return wake, func() { n.leave(channel, sub) }
}

// order sends SUBSCRIBE or UNSUBSCRIBE, whichever is right by now: two orders that overtake
// each other send the same.
//
// It needs no error: the client subscribes again when it has reconnected, and until then
// every waiter has its time-out.
func (n *notifier) order(pubsub *redis.PubSub, channel string) {
	n.ordering.Lock()
	defer n.ordering.Unlock()
	n.mu.Lock()
	wanted := n.subs[channel] != nil
	n.mu.Unlock()
	if wanted {
		_ = pubsub.Subscribe(context.Background(), channel)
	} else {
		_ = pubsub.Unsubscribe(context.Background(), channel)
	}
}

// receive runs until the client is closed. When the connection breaks, it wakes all waiters:
// a release may have been missed, or Redis be down, and their next try finds out. The client
// connects and subscribes again by itself.
func (n *notifier) receive(pubsub *redis.PubSub) {
	ctx := context.Background()
	for silent := false; ; {
		message, err := pubsub.ReceiveTimeout(ctx, pingAfter)
		switch m := message.(type) {
		case *redis.Message:
			n.notify(m.Channel)
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				n.confirm(m.Channel)
			}
		}
		var late net.Error
		switch {
		case err == nil:
			silent = false
		case errors.Is(err, redis.ErrClosed):
			return
		case errors.As(err, &late) && late.Timeout() && !silent:
			silent = true
			_ = pubsub.Ping(ctx) // without an answer, the next time-out ends the connection
		default:
			n.notifyAll()
			time.Sleep(redialPause)
		}
	}
}

func (n *notifier) notifyAll() {
	n.mu.Lock()
	channels := slices.Collect(maps.Keys(n.subs))
	n.mu.Unlock()
	for _, channel := range channels {
		n.notify(channel)
	}
}

func (n *notifier) notify(channel string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub := n.subs[channel]; sub != nil {
		n.wake(sub)
	}
}

func (n *notifier) confirm(channel string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub := n.subs[channel]; sub != nil {
		n.wake(sub)
		sub.confirmed = sub.sequence
	}
}

// wake needs the mutex. All channels share one count, so that a new subscription never
// repeats the numbers of an old one.
func (n *notifier) wake(sub *subscription) {
	n.messages++
	sub.sequence = n.messages
	close(sub.changed)
	sub.changed = make(chan struct{})
}

func (n *notifier) leave(channel string, sub *subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub.waiters--; sub.waiters > 0 {
		return
	}
	sub.unused = time.AfterFunc(n.linger, func() { n.drop(channel, sub) })
}

func (n *notifier) drop(channel string, sub *subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub.waiters > 0 || n.subs[channel] != sub {
		return
	}
	delete(n.subs, channel)
	go n.order(n.pubsub, channel)
}
