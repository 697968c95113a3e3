package redislock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/locks"
)

// TestRelayScript: the holder hands the lock on with the next fence; nobody else does.
func TestRelayScript(t *testing.T) {
	c := one(t)
	l, key := newRedisLock(c, time.Minute), newKey()
	lock, counter, _ := redisNames(key)
	relay := func(from, to string) int64 {
		t.Helper()
		fence, err := l.relay.Run(t.Context(), c, []string{lock, counter}, from, to, time.Hour.Milliseconds()).Int64()
		if err != nil {
			t.Fatal(err)
		}
		return fence
	}
	if got := relay("nobody", "heir"); got != 0 || c.Exists(t.Context(), lock).Val() != 0 {
		t.Errorf("a free lock was handed on, with fence %d", got)
	}
	if _, _, err := l.try(t.Context(), key, "holder", time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := relay("rival", "heir"); got != 0 {
		t.Errorf("a rival handed it on, with fence %d", got)
	}
	if got := relay("holder", "heir"); got != 2 {
		t.Errorf("handed on with fence %d, want 2", got)
	}
	if fields := c.HGetAll(t.Context(), lock).Val(); len(fields) != 1 || fields["heir"] != "1" {
		t.Errorf("the hash holds %v", fields)
	}
	if ttl := c.PTTL(t.Context(), lock).Val(); ttl <= time.Minute {
		t.Errorf("the heir's lease is %v, not its own", ttl)
	}
}

// spied is a redis lock that tells what it was asked.
type spied struct {
	*redisLock
	last locks.Request
}

func (s *spied) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	s.last = r
	return s.redisLock.Acquire(ctx, r)
}

// succession has a holder, and an heir in the line behind it.
func succession(t *testing.T, l *redisLock, key string) (holder *locks.Lock, heir <-chan *locks.Lock) {
	t.Helper()
	spy := &spied{redisLock: l}
	line := locks.Queue(spy)
	holder = acquire(t, line, request(key, "holder", 0, 0))
	got := make(chan *locks.Lock, 1)
	go func() {
		defer close(got)
		if h, err := line.Acquire(t.Context(), request(key, "heir", time.Minute, 0)); err != nil {
			t.Errorf("the heir: %v", err)
		} else {
			got <- h
		}
	}()
	next := spy.last.Next
	soon(t, "the heir stands in the line", next)
	return holder, got
}

// TestSuccession: a release makes the heir the holder, with a fence of its own, and one
// script does it.
func TestSuccession(t *testing.T) {
	c := one(t)
	key := newKey()
	holder, heirs := succession(t, bare(c), key)
	before := commands(t, c)
	if err := holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	heir := <-heirs
	if n := commands(t, c) - before; n != 1 {
		t.Errorf("%d scripts from one holder to the next", n)
	}
	lock, _, _ := redisNames(key)
	fields := c.HKeys(t.Context(), lock).Val()
	if heir.Fence() != holder.Fence()+1 || heir.Verify() != nil || len(fields) != 1 || !strings.HasPrefix(fields[0], "heir:") {
		t.Errorf("the heir has fence %d after %d, %v; the hash holds %v", heir.Fence(), holder.Fence(), heir.Verify(), fields)
	}
	if err := heir.Release(t.Context()); err != nil || c.Exists(t.Context(), lock).Val() != 0 {
		t.Errorf("the heir's release: %v", err)
	}
}

// TestSuccessionAfterLoss: what was lost can't be handed on. The holder hears of it, and
// the heir asks for itself.
func TestSuccessionAfterLoss(t *testing.T) {
	c := one(t)
	key := newKey()
	holder, heirs := succession(t, bare(c), key)
	lock, _, _ := redisNames(key)
	c.Del(t.Context(), lock)
	if err := holder.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("the release of a lock that was gone: %v", err)
	}
	heir := <-heirs
	if err := heir.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLateRelay: a relay that the server gets when all is over makes nobody a holder.
func TestLateRelay(t *testing.T) {
	line := lineTo(t, servers.Addresses().Redis[0])
	l := bare(client(t, servers.RedisURL(line.Addr())))
	key := newKey()
	for _, h := range []string{"the scripts are loaded", "now"} {
		holder, heirs := succession(t, l, key)
		if h == "now" {
			held, free := line.HoldNext(l.relay.Hash())
			go func() {
				<-held
				soon(t, "the lock is freed", func() bool { return one(t).Exists(t.Context(), "redis:"+key).Val() == 0 })
				free()
			}()
		}
		_ = holder.Release(t.Context())
		heir := <-heirs
		if err := heir.Verify(); err != nil {
			t.Errorf("%s: the heir: %v", h, err)
		}
		if err := heir.Release(t.Context()); err != nil {
			t.Errorf("%s: the heir's release: %v", h, err)
		}
	}
	lock, _, _ := redisNames(key)
	soon(t, "nobody holds it", func() bool { return one(t).Exists(t.Context(), lock).Val() == 0 })
}

// TestRedisOnce: what a key that is named once leaves in Redis goes by itself, whether it
// was released or handed on.
func TestRedisOnce(t *testing.T) {
	c := one(t)
	l := RedisOnce(c, time.Second)
	for range 3 {
		key := newKey()
		_, counter, _ := redisNames(key)
		h, err := l.Acquire(t.Context(), request(key, "owner", 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if life := c.PTTL(t.Context(), counter).Val(); life <= 0 || life > time.Minute {
			t.Errorf("the fence counter lives for %v", life)
		}
	}
	once, key := newRedisLock(c, time.Minute), newKey()
	once.counterLife = []any{int64(60_000)}
	_, counter, _ := redisNames(key)
	if _, _, err := once.try(t.Context(), key, "holder", time.Minute); err != nil {
		t.Fatal(err)
	}
	c.Persist(t.Context(), counter)
	lock, _, _ := redisNames(key)
	if once.relay.Run(t.Context(), c, []string{lock, counter}, "holder", "heir", 1000, 60_000).Err() != nil {
		t.Fatal("not handed on")
	}
	if life := c.PTTL(t.Context(), counter).Val(); life <= 0 {
		t.Errorf("after a relay the fence counter lives for %v", life)
	}
}
