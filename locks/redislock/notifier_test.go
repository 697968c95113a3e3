package redislock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
)

// woken fails the test if no wake-up comes within 20 s.
func woken(t *testing.T, what string, wake <-chan struct{}) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(20 * time.Second):
		t.Fatalf("never woken: %s", what)
	}
}

// asleep returns when Redis has confirmed the subscription of the channel.
func asleep(t *testing.T, s *notifier, channel string) {
	t.Helper()
	soon(t, "the subscription is confirmed", func() bool {
		return s.sequence(channel) > 0
	})
}

// TestNotifier checks that a message wakes every waiter. A waiter does not miss a message that
// comes between its try and its wait.
func TestNotifier(t *testing.T) {
	c := one(t)
	s := newNotifier(c, time.Millisecond)
	channel := newKey()
	count := s.sequence(channel)
	first, leave := s.listen(channel, count)
	woken(t, "by the confirmation of the subscription", first)
	asleep(t, s, channel)
	count = s.sequence(channel)
	a, leaveA := s.listen(channel, count)
	b, leaveB := s.listen(channel, count)
	select {
	case <-a:
		t.Fatal("woken by nothing")
	case <-time.After(50 * time.Millisecond):
	}
	c.Publish(t.Context(), channel, "0")
	woken(t, "a", a)
	woken(t, "b", b)
	missed, leaveC := s.listen(channel, count)
	woken(t, "by what came after its count", missed)
	for _, f := range []func(){leave, leaveA, leaveB, leaveC} {
		f()
	}
	soon(t, "the unused subscription has ended", func() bool { return s.sequence(channel) == 0 })
}

// TestNotifierAfterTheLastWaiter lets a waiter arrive while an unused subscription ends. The waiter
// must get a subscription. SUBSCRIBE and UNSUBSCRIBE are sent concurrently, so the test is
// repeated.
func TestNotifierAfterTheLastWaiter(t *testing.T) {
	c := one(t)
	s := newNotifier(c, time.Millisecond)
	channel := newKey()
	for round := range 300 {
		count := s.sequence(channel)
		wake, leave := s.listen(channel, count)
		woken(t, "by the confirmation", wake)
		s.mu.Lock()
		sub := s.subs[channel]
		s.mu.Unlock()
		leave()
		s.drop(channel, sub) // as if the linger time were over
		_, leave = s.listen(channel, 0)
		soon(t, "round: a waiter is subscribed", func() bool {
			return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
		})
		// The subscription must stay.
		time.Sleep(time.Millisecond)
		if c.PubSubNumSub(t.Context(), channel).Val()[channel] != 1 {
			t.Fatalf("round %d: a waiter lost its subscription", round)
		}
		s.mu.Lock()
		sub = s.subs[channel]
		s.mu.Unlock()
		leave()
		s.drop(channel, sub)
		soon(t, "the channel has no subscription", func() bool { return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 0 })
	}
}

// TestNotifierAfterReconnect checks that all waiters are woken when a broken connection is back,
// because they may have missed messages.
func TestNotifierAfterReconnect(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{Redis: 1})
	c := client(t, r.Addresses().Redis[0])
	s := newNotifier(c, time.Millisecond)
	channel := newKey()
	first, leave := s.listen(channel, 0)
	defer leave()
	woken(t, "by the confirmation", first)
	wake, leaveToo := s.listen(channel, s.sequence(channel))
	defer leaveToo()
	server, err := r.Server("redis-1")
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	woken(t, "after the server's return", wake)
}

// TestNotifierNumbersNeverRepeat replaces the subscription after a waiter has read its number, but
// before the waiter waits. The new subscription must not have the same number, or the waiter would
// miss a message.
func TestNotifierNumbersNeverRepeat(t *testing.T) {
	c := one(t)
	s := newNotifier(c, time.Millisecond)
	channel := newKey()
	_, leave := s.listen(channel, 0)
	asleep(t, s, channel)
	before := s.sequence(channel)
	s.mu.Lock()
	sub := s.subs[channel]
	s.mu.Unlock()
	leave()
	s.drop(channel, sub)
	soon(t, "the channel has no subscription", func() bool { return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 0 })
	_, leaveToo := s.listen(channel, 0)
	defer leaveToo()
	asleep(t, s, channel)
	wake, leaveLast := s.listen(channel, before)
	defer leaveLast()
	woken(t, "by what came after its number", wake)
}

// TestNotifierHalfOpen makes the connection of a subscription half open. The notifier must subscribe again on a
// new connection, so that messages arrive again.
func TestNotifierHalfOpen(t *testing.T) {
	t.Parallel()
	link := linkTo(t, servers.Addresses().Redis[0])
	s, direct := newNotifier(client(t, servers.RedisURL(link.Addr())), time.Minute), one(t)
	channel := newKey()
	_, leave := s.listen(channel, 0)
	defer leave()
	asleep(t, s, channel)
	link.Silence()
	soon(t, "a message arrives", func() bool {
		before := s.sequence(channel)
		direct.Publish(t.Context(), channel, "0")
		return s.sequence(channel) > before
	})
}

// TestChannelsRefused locks as a user without rights on any channel, which is the default of Redis 7. Its waiters
// must not wait for messages, and its release must not fail. When it gets the rights, its waiters get messages.
func TestChannelsRefused(t *testing.T) {
	t.Parallel()
	admin, name := one(t), strings.ReplaceAll(newKey(), ":", "-")
	if err := admin.Do(t.Context(), "ACL", "SETUSER", name, "on", ">secret", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Do(context.Background(), "ACL", "DELUSER", name) })
	o, err := redis.ParseURL(servers.Addresses().Redis[0])
	if err != nil {
		t.Fatal(err)
	}
	limited := client(t, "redis://"+name+":secret@"+o.Addr+"/0")
	for _, l := range []locks.Locker{Redis(limited, time.Hour), Fair(limited, time.Hour)} {
		key := newKey()
		hold := acquire(t, l, request(key, "holder", 0, 0))
		granted := make(chan *locks.Lock, 1)
		go func() { granted <- acquire(t, l, request(key, "waiter", 5*time.Minute, 0)) }()
		if err := hold.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", l.Card().ID, err)
		}
		select {
		case next := <-granted:
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: a free lock is not granted", l.Card().ID)
		}
	}
	s := newNotifier(limited, time.Minute)
	channel := newKey()
	_, leave := s.listen(channel, 0)
	defer leave()
	soon(t, "the subscription is refused", func() bool { return s.snapshot(channel).refused })
	if err := admin.Do(t.Context(), "ACL", "SETUSER", name, "allchannels").Err(); err != nil {
		t.Fatal(err)
	}
	soon(t, "the subscription is confirmed", func() bool {
		_, leave := s.listen(channel, 0)
		defer leave()
		return !s.snapshot(channel).refused
	})
}
