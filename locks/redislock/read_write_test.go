package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// enough is a wait that does not end during a successful test.
const enough = 20 * time.Second

// threeReplicas returns the primitives of three processes.
func threeReplicas(t *testing.T, lease time.Duration) [3]locks.Primitives {
	t.Helper()
	return [3]locks.Primitives{Primitives(one(t), "", lease), Primitives(one(t), "", lease), Primitives(one(t), "", lease)}
}

// given returns h, the Lock of a request. It fails the test if the request got an error.
func given(t *testing.T, h *locks.Lock, err error) *locks.Lock {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

// giveBack releases a Lock that must still be held.
func giveBack(t *testing.T, holds ...*locks.Lock) {
	t.Helper()
	for _, h := range holds {
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// wantNot fails the test if a Lock was granted, or if err is not want.
func wantNot(t *testing.T, what string, h *locks.Lock, err, want error) {
	t.Helper()
	if h != nil {
		_ = h.Release(context.Background())
	}
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// outcome is the result of an acquisition in another goroutine.
type outcome struct {
	h   *locks.Lock
	err error
}

func beside(take func() (*locks.Lock, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		h, err := take()
		done <- outcome{h, err}
	}()
	return done
}

func result(t *testing.T, what string, done <-chan outcome) (*locks.Lock, error) {
	t.Helper()
	select {
	case o := <-done:
		return o.h, o.err
	case <-time.After(2 * enough):
		t.Fatalf("never ended: %s", what)
		return nil, errors.ErrUnsupported
	}
}

// listening returns when want processes have subscribed to the channel.
func listening(t *testing.T, c redis.UniversalClient, channel string, want int64) {
	t.Helper()
	soon(t, "the waiters listen", func() bool { return c.PubSubNumSub(t.Context(), channel).Val()[channel] == want })
}

// nothingLeft returns when Redis has no data of the primitives named key any more.
func nothingLeft(t *testing.T, c redis.UniversalClient, key string) {
	t.Helper()
	soon(t, "no key is left", func() bool {
		left, err := c.Keys(t.Context(), primitivePrefix+"*"+key+"*").Result()
		return err == nil && len(left) == 0
	})
}

// TestReadWriteReentry checks that an owner acquires again without waiting, and holds the lock
// until its last release.
func TestReadWriteReentry(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	a, b := all[0].ReadWrite, all[1].ReadWrite
	take := func(f func(context.Context, locks.Request) (*locks.Lock, error), owner string) *locks.Lock {
		t.Helper()
		h, err := f(t.Context(), request(key, owner, 0, 0))
		return given(t, h, err)
	}
	first, second, reads := take(a.Write, "x"), take(a.Write, "x"), take(a.Read, "x")
	refuse := func(what string) {
		t.Helper()
		for _, f := range []func(context.Context, locks.Request) (*locks.Lock, error){b.Read, b.Write} {
			h, err := f(t.Context(), request(key, "x:y", 0, 0))
			wantNot(t, what, h, err, locks.ErrNotAcquired)
		}
	}
	refuse("written twice")
	giveBack(t, first)
	refuse("written once")
	// The owner x now releases its last write lock, and keeps its read lock. After that, other
	// owners can read, too. No owner can write, not even x.
	giveBack(t, second)
	other := take(b.Read, "y")
	h, err := a.Write(t.Context(), request(key, "x", time.Minute, 0))
	wantNot(t, "upgrade", h, err, locks.ErrUpgrade)
	giveBack(t, other)
	h, err = b.Write(t.Context(), request(key, "x", time.Minute, 0))
	wantNot(t, "upgrade of the only reader, from another replica", h, err, locks.ErrUpgrade)
	h, err = b.Write(t.Context(), request(key, "y", 0, 0))
	wantNot(t, "a writer beside a reader", h, err, locks.ErrNotAcquired)
	again := take(a.Read, "x")
	giveBack(t, reads)
	h, err = b.Write(t.Context(), request(key, "y", 0, 0))
	wantNot(t, "a writer beside a reader's second read", h, err, locks.ErrNotAcquired)
	giveBack(t, again)
	giveBack(t, take(b.Write, "y"))
	if err := again.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("released twice: %v", err)
	}
	nothingLeft(t, c, key)
}

// TestWriterWaits checks that a waiting writer blocks new readers, but not a reader that reads
// again: the writer waits for the first read of this reader.
func TestWriterWaits(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	_, _, waiting := readWriteNames(primitivePrefix, key)
	h, err := all[0].ReadWrite.Read(t.Context(), request(key, "early", 0, 0))
	early := given(t, h, err)
	gone, cancel := context.WithCancel(t.Context())
	fickle := beside(func() (*locks.Lock, error) {
		return all[1].ReadWrite.Write(gone, request(key, "fickle", enough, 0))
	})
	soon(t, "the writer waits", func() bool { return c.ZCard(t.Context(), waiting).Val() == 1 })
	patient := beside(func() (*locks.Lock, error) {
		return all[1].ReadWrite.Write(t.Context(), request(key, "patient", enough, 0))
	})
	l := all[1].ReadWrite.(*readWrite) //nolint:forcetypeassert // ours
	soon(t, "the second writer stands behind it", func() bool { return l.writers.Waiting(key) > 0 })
	late := func(what string) {
		t.Helper()
		h, err := all[2].ReadWrite.Read(t.Context(), request(key, "late", 0, 0))
		wantNot(t, what, h, err, locks.ErrNotAcquired)
		h, err = all[2].ReadWrite.Write(t.Context(), request(key, "late", 0, 0))
		wantNot(t, what, h, err, locks.ErrNotAcquired)
	}
	late("one that came after the writers")
	h, err = all[0].ReadWrite.Read(t.Context(), request(key, "early", 0, 0))
	again := given(t, h, err)
	cancel()
	h, err = result(t, "the cancelled writer", fickle)
	wantNot(t, "the cancelled writer", h, err, context.Canceled)
	late("one that came before the first writer gave up")
	giveBack(t, early, again)
	h, err = result(t, "the writer", patient)
	giveBack(t, given(t, h, err))
	nothingLeft(t, c, key)
}

// TestWriterGivesUp checks that the readers behind a writer are granted the lock when the writer
// gives up. The lease is an hour, so a message has woken them.
func TestWriterGivesUp(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	_, _, waiting := readWriteNames(primitivePrefix, key)
	h, err := all[0].ReadWrite.Read(t.Context(), request(key, "early", 0, 0))
	early := given(t, h, err)
	writer := beside(func() (*locks.Lock, error) {
		return all[1].ReadWrite.Write(t.Context(), request(key, "writer", time.Second, 0))
	})
	soon(t, "the writer waits", func() bool { return c.ZCard(t.Context(), waiting).Val() == 1 })
	late := beside(func() (*locks.Lock, error) {
		return all[2].ReadWrite.Read(t.Context(), request(key, "late", enough, 0))
	})
	h, err = result(t, "the writer", writer)
	wantNot(t, "the writer", h, err, locks.ErrNotAcquired)
	h, err = result(t, "the late reader", late)
	giveBack(t, early, given(t, h, err))
	nothingLeft(t, c, key)
}

// TestWriterAmongReaders checks that a writer is granted the lock although readers overlap all the
// time.
func TestWriterAmongReaders(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	readers, _, _ := readWriteNames(primitivePrefix, key)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stream sync.WaitGroup
	for i := range 6 {
		stream.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				h, err := all[i%3].ReadWrite.Read(ctx, request(key, fmt.Sprint(i, n), enough, 0))
				if err != nil {
					continue
				}
				_ = locks.Work(ctx, 20*time.Millisecond)
				giveBack(t, h)
			}
		})
	}
	soon(t, "several read", func() bool { return c.ZCard(t.Context(), readers).Val() > 2 })
	for range 5 {
		h, err := all[1].ReadWrite.Write(t.Context(), request(key, "writer", enough, 0))
		if err != nil {
			t.Fatal(err)
		}
		if n := c.ZCard(t.Context(), readers).Val(); n > 0 {
			t.Errorf("%d readers beside the writer", n)
		}
		giveBack(t, h)
	}
	cancel()
	stream.Wait()
	nothingLeft(t, c, key)
}

// TestDeadReader checks that a dead reader's lock expires while another reader renews its lock. A
// dead waiting writer blocks readers for the lease of its entry at most.
func TestDeadReader(t *testing.T) {
	const lease = 500 * time.Millisecond
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	readers, writers, waiting := readWriteNames(primitivePrefix, key)
	script := redis.NewScript(readWriteReadLua)
	if granted, _, err := readWriteAnswer(script.Run(t.Context(), c, []string{readers, writers, waiting}, locks.Token("dead"), lease.Milliseconds())); err != nil || !granted {
		t.Fatal(granted, err)
	}
	h, err := all[0].ReadWrite.Read(t.Context(), request(key, "living", 0, lease))
	living := given(t, h, err)
	write := redis.NewScript(readWriteWriteLua)
	if granted, _, err := readWriteAnswer(write.Run(t.Context(), c, []string{readers, writers, waiting}, locks.Token("dead"), 1, "link", lease.Milliseconds(), true)); granted || !errors.Is(err, locks.ErrUpgrade) {
		t.Fatal(granted, err)
	}
	if granted, _, err := readWriteAnswer(write.Run(t.Context(), c, []string{readers, writers, waiting}, locks.Token("dead writer"), 1, "link", lease.Milliseconds(), true)); granted || err != nil {
		t.Fatal(granted, err)
	}
	// No message comes: this reader wakes when the entry of the dead writer expires.
	h, err = all[1].ReadWrite.Read(t.Context(), request(key, "late", enough, 0))
	giveBack(t, given(t, h, err))
	soon(t, "the dead reader is gone", func() bool {
		h, err := all[1].ReadWrite.Read(t.Context(), request(key, "sweeper", 0, 0))
		if err == nil {
			err = h.Release(t.Context())
		}
		return err == nil && c.ZCard(t.Context(), readers).Val() == 1
	})
	if err := living.Verify(); err != nil {
		t.Errorf("the living reader: %v", err)
	}
	h, err = all[2].ReadWrite.Write(t.Context(), request(key, "writer", 0, 0))
	wantNot(t, "a writer beside the living reader", h, err, locks.ErrNotAcquired)
	giveBack(t, living)
	h, err = all[2].ReadWrite.Write(t.Context(), request(key, "writer", 0, 0))
	giveBack(t, given(t, h, err))
	nothingLeft(t, c, key)
}

// TestDeadAlone checks that a writer waits until the lease of a dead reader has expired. The keys
// of dead holders expire, too.
func TestDeadAlone(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	readers, writers, waiting := readWriteNames(primitivePrefix, key)
	script := redis.NewScript(readWriteReadLua)
	die := func() {
		t.Helper()
		if granted, _, err := readWriteAnswer(script.Run(t.Context(), c, []string{readers, writers, waiting}, locks.Token("dead"), 400)); err != nil || !granted {
			t.Fatal(granted, err)
		}
	}
	die()
	h, err := all[0].ReadWrite.Write(t.Context(), request(key, "writer", enough, 0))
	giveBack(t, given(t, h, err))
	die()
	nothingLeft(t, c, key)
}

// TestPrimitivesClear checks that Clear takes the locks from their holders and wakes the waiters.
func TestPrimitivesClear(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, 900*time.Millisecond), newKey()
	h, err := all[0].ReadWrite.Write(t.Context(), request(key, "writer", 0, 0))
	writer := given(t, h, err)
	h, err = all[0].Semaphore.Acquire(t.Context(), request(key, "permit", 0, 0), 1, 1)
	permit := given(t, h, err)
	if set, err := all[0].Latch.TrySet(t.Context(), key, 2); err != nil || !set {
		t.Fatal(set, err)
	}
	reader := beside(func() (*locks.Lock, error) {
		return all[1].ReadWrite.Read(t.Context(), request(key, "reader", enough, 0))
	})
	next := beside(func() (*locks.Lock, error) {
		return all[1].Semaphore.Acquire(t.Context(), request(key, "next", enough, 0), 1, 1)
	})
	through := beside(func() (*locks.Lock, error) { return nil, all[1].Latch.Await(t.Context(), request(key, "", enough, 0)) })
	_, latch := latchNames(primitivePrefix, key)
	for _, channel := range []string{"primitive:rw:{" + key + "}:channel", "primitive:semaphore:{" + key + "}:channel", latch} {
		listening(t, c, channel, 1)
	}
	if err := all[2].Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*locks.Lock{writer, permit} {
		woken(t, "the holder", h.Context().Done())
		if err := context.Cause(h.Context()); !errors.Is(err, locks.ErrLost) {
			t.Errorf("the cause of the loss is %v", err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
			t.Errorf("a late release: %v", err)
		}
	}
	h, err = result(t, "the reader", reader)
	giveBack(t, given(t, h, err))
	h, err = result(t, "the next permit", next)
	giveBack(t, given(t, h, err))
	if _, err := result(t, "a waiter of the latch", through); err != nil {
		t.Error(err)
	}
	nothingLeft(t, c, key)
}

// TestReadWriteStorm runs readers and writers on three replicas, and cancels some of them. No
// writer may work beside another owner, and no key may stay in Redis.
func TestReadWriteStorm(t *testing.T) {
	c, all, key := one(t), threeReplicas(t, time.Hour), newKey()
	warm(t, all, key)
	before := runtime.NumGoroutine()
	var readers, writers, granted atomic.Int64
	var tasks sync.WaitGroup
	for i := range 60 {
		tasks.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l, r := all[i%3].ReadWrite, request(key, fmt.Sprint("task", i), enough, 0)
			if i%10 == 0 {
				time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
			}
			take, inside, most := l.Read, &readers, int64(60)
			if i%4 == 1 {
				take, inside, most = l.Write, &writers, 1
			}
			h, err := take(ctx, r)
			if err != nil {
				if ctx.Err() == nil || !errors.Is(err, locks.ErrNotAcquired) {
					t.Error(err)
				}
				return
			}
			granted.Add(1)
			if n := inside.Add(1); n > most || (writers.Load() > 0 && readers.Load() > 0) {
				t.Errorf("%d readers and %d writers inside", readers.Load(), writers.Load())
			}
			time.Sleep(time.Millisecond)
			inside.Add(-1)
			giveBack(t, h)
		})
	}
	tasks.Wait()
	if granted.Load() < 54 {
		t.Errorf("%d were granted", granted.Load())
	}
	nothingLeft(t, c, key)
	soon(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// warm opens the long-lived connections, so that a later count of goroutines finds only leaks.
func warm(t *testing.T, all [3]locks.Primitives, key string) {
	t.Helper()
	for _, p := range all {
		if set, err := p.Latch.TrySet(t.Context(), "warm:"+key, 1); err != nil || !set {
			t.Fatal(set, err)
		}
		err := p.Latch.Await(t.Context(), request("warm:"+key, "", 50*time.Millisecond, 0))
		if !errors.Is(err, locks.ErrNotAcquired) {
			t.Fatal(err)
		}
		if _, err := p.Latch.CountDown(t.Context(), "warm:"+key); err != nil {
			t.Fatal(err)
		}
	}
}

// acquires makes a Locker of a function such as Read or Write, because the function late expects
// one.
type acquires func(context.Context, locks.Request) (*locks.Lock, error)

func (f acquires) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	return f(ctx, r)
}

func (acquires) Card() api.Card { return api.Card{} }

// TestLatePrimitives delays a Redis script until its request is cancelled: no key may be left. It
// also checks that an unreachable Redis is reported as unavailable, not as busy.
func TestLatePrimitives(t *testing.T) {
	for _, test := range []struct {
		name, script string
		of           func(locks.Primitives) acquires
	}{
		{"read", readWriteReadLua, func(p locks.Primitives) acquires { return p.ReadWrite.Read }},
		{"write", readWriteWriteLua, func(p locks.Primitives) acquires { return p.ReadWrite.Write }},
		{"semaphore", semaphoreAcquireLua, func(p locks.Primitives) acquires {
			return func(ctx context.Context, r locks.Request) (*locks.Lock, error) {
				return p.Semaphore.Acquire(ctx, r, 3, 2)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, link, key := one(t), linkTo(t, servers.Addresses().Redis[0]), newKey()
			take := test.of(Primitives(client(t, servers.RedisURL(link.Addr())), "", time.Hour))
			h, err := take(t.Context(), request(key, "first", 0, 0)) // this loads the scripts
			giveBack(t, given(t, h, err))
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			late(ctx, t, link, redis.NewScript(test.script).Hash(), take, request(key, "late", time.Minute, 0), func() {})
			nothingLeft(t, c, key)
			h, err = take(ctx, request(key, "gone", 0, 0))
			wantNot(t, "a caller that is gone", h, err, locks.ErrNotAcquired)
			link.Cut(true)
			h, err = take(t.Context(), request(key, "cut off", time.Second, 0))
			wantNot(t, "a line that is cut", h, err, stock.ErrUnavailable)
			var off *stock.Unavailable
			if !errors.As(err, &off) || off.Backend != "redis" || strings.Contains(err.Error(), "not acquired") {
				t.Errorf("a line that is cut: %v", err)
			}
		})
	}
}
