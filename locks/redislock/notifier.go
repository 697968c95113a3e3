package redislock

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

const (
	// pingAfter is the time without a message after which a PING checks the connection.
	pingAfter = 5 * time.Second
	// redialPause is the pause between two attempts to connect again.
	redialPause = 100 * time.Millisecond
	// linger is the time that a subscription stays for the next waiter when no waiter is left.
	linger = 5 * time.Second
)

// notifier wakes waiters when a message arrives on their channel. A notifier has one connection
// for all messages, and one subscription for each channel, which the channel's waiters share.
type notifier struct {
	client redis.UniversalClient
	linger time.Duration // life of a subscription after its last waiter has left

	ordering sync.Mutex // held while a SUBSCRIBE or UNSUBSCRIBE is sent

	mu       sync.Mutex
	pubsub   *redis.PubSub
	subs     map[string]*subscription
	messages uint64 // number of messages on all channels
}

// subscription has the sequence number of its last message. A waiter compares this number with the
// number that it read before its try. So the waiter does not miss a message between try and wait.
type subscription struct {
	sequence  uint64        // 0 means that Redis has not confirmed the subscription yet
	confirmed uint64        // the sequence number of the last confirmation
	changed   chan struct{} // closed at the next message
	waiters   int
	unused    *time.Timer
}

func newNotifier(c redis.UniversalClient, linger time.Duration) *notifier {
	return &notifier{client: c, linger: linger, subs: map[string]*subscription{}}
}

// sequence returns the number of the channel's last message. 0 means no message or subscription.
func (n *notifier) sequence(channel string) uint64 { return n.snapshot(channel).sequence }

func (n *notifier) snapshot(channel string) (sub subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub := n.subs[channel]; sub != nil {
		return *sub
	}
	return sub
}

// wait returns nil after a message that is newer than sequence, or when limit has passed. It
// returns ErrNotAcquired when r.Wait has passed since began, or when ctx ends.
func (n *notifier) wait(ctx context.Context, r locks.Request, began time.Time, channel string, sequence uint64, limit time.Duration) error {
	if time.Since(began) >= r.Wait { // a single try needs no subscription
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	wake, leave := n.listen(channel, sequence)
	defer leave()
	return locks.Await(ctx, r, began, limit, wake)
}

// listen returns a Go channel that is closed at the first message after sequence. Redis confirms
// each subscription, also after a reconnect. The confirmation counts as a message. A waiter may
// have missed messages before the confirmation, so the waiter must try again.
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

// order sends SUBSCRIBE if the notifier has a subscription to the channel, else UNSUBSCRIBE. So the
// order of concurrent calls does not matter. Errors can be ignored: the client subscribes again
// after a reconnect, and until then every waiter has its time-out.
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

// receive runs until the client is closed. When the connection breaks, receive wakes all waiters,
// because they may have missed a release. The client reconnects and subscribes again by itself.
func (n *notifier) receive(pubsub *redis.PubSub) {
	ctx := context.Background()
	for silent := false; ; {
		message, err := pubsub.ReceiveTimeout(ctx, pingAfter)
		switch m := message.(type) {
		case *redis.Message:
			n.notify(m.Channel, false)
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				n.notify(m.Channel, true)
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
	defer n.mu.Unlock()
	for _, sub := range n.subs {
		n.wake(sub)
	}
}

// notify wakes a channel's waiters. confirmed means that the message confirms the subscription.
func (n *notifier) notify(channel string, confirmed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sub := n.subs[channel]
	if sub == nil {
		return
	}
	n.wake(sub)
	if confirmed {
		sub.confirmed = sub.sequence
	}
}

// wake wakes the waiters of sub. The caller must hold mu. All channels share one counter, so a new
// subscription never has the sequence number of an old subscription.
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
