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
	// pingAfter is the time without a message after which a PING checks the connection. Without an answer in
	// the same time again, the connection is half open, and a new one replaces it.
	pingAfter = 2 * time.Second
	// pollPause is the pause between the tries of a waiter whose subscription Redis has refused. Every askAgain,
	// one of them asks for the subscription again.
	pollPause = 50 * time.Millisecond
	askAgain  = time.Second
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
	count     uint64        // number of its messages
	turn      uint64        // the count from which this process tries again; see giveWay
	changed   chan struct{} // closed at the next message
	waiters   int
	unused    *time.Timer
	asked     time.Time // when SUBSCRIBE was last sent
	refused   bool      // Redis has refused a SUBSCRIBE since
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

// giveWay lets the other processes that a release has notified go first: each sends a message when it releases
// the lock. before is the subscription before the release, whose own message counts, too.
func (n *notifier) giveWay(channel string, before subscription, notified uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sub := n.subs[channel]; sub != nil && sub.sequence > 0 && before.sequence > 0 && notified > 1 {
		sub.turn = before.count + notified
	}
}

// ahead reports whether other processes go first.
func (n *notifier) ahead(channel string) bool {
	sub := n.snapshot(channel)
	return sub.count < sub.turn
}

// wait returns nil after a message that is newer than sequence, or when limit has passed. It
// returns ErrNotAcquired when r.Wait has passed since began, or when ctx ends.
func (n *notifier) wait(ctx context.Context, r locks.Request, began time.Time, channel string, sequence uint64, limit time.Duration) error {
	if time.Since(began) >= r.Wait { // a single try needs no subscription
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	wake, leave := n.listen(channel, sequence)
	defer leave()
	return locks.Await(ctx, r, began, n.limited(channel, limit), wake)
}

// limited returns the longest wait for a message: pollPause if Redis refuses the subscription, as it does for a
// user without rights on the channel. Such a user can still lock.
func (n *notifier) limited(channel string, limit time.Duration) time.Duration {
	if n.snapshot(channel).refused {
		return min(limit, pollPause)
	}
	return limit
}

// listen returns a Go channel that is closed at the first message after sequence. Redis confirms
// each subscription, also after a reconnect. The confirmation counts as a message. A waiter may
// have missed messages before the confirmation, so the waiter must try again.
func (n *notifier) listen(channel string, sequence uint64) (wake <-chan struct{}, leave func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sub := n.subs[channel]
	if sub == nil {
		sub = &subscription{changed: make(chan struct{}), asked: time.Now()}
		n.subs[channel] = sub
		if n.pubsub == nil {
			n.pubsub = n.client.Subscribe(context.Background())
			go n.receive(n.pubsub)
		}
		go n.order(channel)
	} else if sub.refused && time.Since(sub.asked) > askAgain {
		sub.asked = time.Now()
		go n.order(channel)
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
func (n *notifier) order(channel string) {
	n.ordering.Lock()
	defer n.ordering.Unlock()
	n.mu.Lock()
	pubsub, wanted := n.pubsub, n.subs[channel] != nil
	n.mu.Unlock()
	if wanted {
		_ = pubsub.Subscribe(context.Background(), channel)
	} else {
		_ = pubsub.Unsubscribe(context.Background(), channel)
	}
}

// receive runs until the client is closed. When the connection breaks, receive wakes all waiters,
// because they may have missed a release. The client reconnects and subscribes again by itself, but it does not
// take a time-out for a broken connection.
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
		var refused redis.Error
		timedOut := errors.As(err, &late) && late.Timeout()
		switch {
		case err == nil:
			silent = false
		case errors.Is(err, redis.ErrClosed):
			return
		case timedOut && !silent:
			silent = true
			_ = pubsub.Ping(ctx)
		case timedOut:
			n.replace(pubsub)
			return
		case errors.As(err, &refused):
			silent = false
			n.notifyAll(true)
			time.Sleep(redialPause)
		default:
			n.notifyAll(false)
			time.Sleep(redialPause)
		}
	}
}

// replace gives all subscriptions to a new connection. Their confirmations wake the waiters.
func (n *notifier) replace(old *redis.PubSub) {
	n.ordering.Lock()
	defer n.ordering.Unlock()
	_ = old.Close()
	n.mu.Lock()
	channels := slices.Collect(maps.Keys(n.subs))
	n.mu.Unlock()
	pubsub := n.client.Subscribe(context.Background(), channels...)
	n.mu.Lock()
	n.pubsub = pubsub
	n.mu.Unlock()
	go n.receive(pubsub)
}

// notifyAll wakes the waiters of all channels. With refused, they poll until Redis confirms their subscriptions: its
// error names none.
func (n *notifier) notifyAll(refused bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, sub := range n.subs {
		sub.refused = sub.refused || refused
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
		sub.confirmed, sub.refused = sub.sequence, false
	}
}

// wake wakes the waiters of sub. The caller must hold mu. All channels share one counter, so a new
// subscription never has the sequence number of an old subscription.
func (n *notifier) wake(sub *subscription) {
	n.messages++
	sub.count++
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
	go n.order(channel)
}
