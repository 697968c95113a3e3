package redislock

import (
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// woken waits for a wake-up that must come.
func woken(t *testing.T, what string, wake <-chan struct{}) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(20 * time.Second):
		t.Fatalf("never woken: %s", what)
	}
}

// asleep returns when listen's channel stays open: the confirmations are in.
func asleep(t *testing.T, s *notifier, channel string) {
	t.Helper()
	soon(t, "the subscription is confirmed", func() bool {
		return s.sequence(channel) > 0
	})
}

// TestNotifier: a message wakes every waiter; one that came between a waiter's try
// and its listening is not missed.
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

// TestNotifierAfterTheLastWaiter: the one who comes when the subscription is being
// given up must not lose it. The two orders travel separately, so it is repeated.
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
		s.drop(channel, sub) // its time is over
		_, leave = s.listen(channel, 0)
		soon(t, "round: a waiter is subscribed", func() bool {
			return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
		})
		// It must stay so.
		time.Sleep(time.Millisecond)
		if c.PubSubNumSub(t.Context(), channel).Val()[channel] != 1 {
			t.Fatalf("round %d: a waiter lost its subscription", round)
		}
		s.mu.Lock()
		sub = s.subs[channel]
		s.mu.Unlock()
		leave()
		s.drop(channel, sub)
		soon(t, "nobody listens", func() bool { return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 0 })
	}
}

// TestNotifierAfterReconnect: whatever was published while the connection was down
// was missed, so everybody looks again when it is back.
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

// TestNotifierNumbersNeverRepeat: a waiter looks at the number, and the subscription is
// replaced before it waits. It must not take the new subscription's number for its own, for
// then it would sleep through a message in between.
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
	soon(t, "nobody is subscribed", func() bool { return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 0 })
	_, leaveToo := s.listen(channel, 0)
	defer leaveToo()
	asleep(t, s, channel)
	wake, leaveLast := s.listen(channel, before)
	defer leaveLast()
	woken(t, "by what came after its number", wake)
}
