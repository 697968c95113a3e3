package interop

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/locks"
)

// TestSharedWithJava runs every test with both locks. It does so with the current versions of the
// libraries and with the tutorial's versions.
func TestSharedWithJava(t *testing.T) {
	cases := []struct {
		name string
		run  func(*testing.T, side, *worker)
	}{
		{"Go releases, Java is notified", javaIsWoken},
		{"Java releases, Go is notified", goIsWoken},
		{"Java acquires twice", javaEntersTwice},
		{"Go acquires twice", goEntersTwice},
		{"a wait that times out leaves nothing", timedOut},
		{"Java cannot release a lock of Go", foreignRelease},
		{"Java gets the lock from busy Go clients", amongBusyTasks},
		{"2000 mixed deductions", mixedDeductions},
		{"a replica dies, Java follows", replicaDies},
	}
	for _, versions := range []string{"current", "tutorial"} {
		for _, s := range []side{onRedis(t), onZooKeeper(t)} {
			t.Run(versions+"/"+s.strategy, func(t *testing.T) {
				java := startWorker(t, versions, s, lease)
				for _, c := range cases {
					if !t.Run(c.name, func(t *testing.T) { c.run(t, s, java) }) {
						t.Fatal("the later cases would fail for the same reason")
					}
				}
				t.Run("Java dies, Go follows", func(t *testing.T) { javaDies(t, s, versions) })
			})
		}
	}
}

func javaIsWoken(t *testing.T, s side, java *worker) {
	key := newKey()
	hold := acquire(t, s, key, "go", 0)
	java.send(t, "acquire", key, millis(longWait))
	soon(t, "Java waits", func() bool { return s.waiting(t, key) })

	released := time.Now()
	release(t, hold)
	java.wantAnswer(t, "granted", "acquire")
	wokenSince(t, released)
	java.want(t, s.count(1), "count", key)
	refused(t, s, key)

	java.want(t, "released", "release", key)
	release(t, acquire(t, s, key, "go", 0))
}

func goIsWoken(t *testing.T, s side, java *worker) {
	key := newKey()
	java.acquire(t, key)
	answer := await(t, s, key, "go")
	soon(t, "Go waits", func() bool { return s.waiting(t, key) })

	released := time.Now()
	java.want(t, "released", "release", key)
	hold := follows(t, answer)
	wokenSince(t, released)
	java.want(t, "timeout", "acquire", key, "0")
	release(t, hold)
}

// wokenSince fails the test if the waiter may have waited for the end of the lease. Holders renew
// the lease every third of its length, so most of the lease was left at the release.
func wokenSince(t *testing.T, released time.Time) {
	t.Helper()
	if waited := time.Since(released); waited > lease/2 {
		t.Fatalf("granted only %v after the release: the waiter was not notified", waited)
	}
}

// refused checks that Go cannot acquire a lock that Java holds.
func refused(t *testing.T, s side, key string) {
	t.Helper()
	h, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: "another owner in Go"})
	if err == nil {
		release(t, h)
	}
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Fatalf("Java holds: want ErrNotAcquired, got %v", err)
	}
}

// follows waits for the result of await, and returns the acquired lock.
func follows(t *testing.T, answer <-chan granted) *locks.Lock {
	t.Helper()
	select {
	case a := <-answer:
		if a.err != nil {
			t.Fatal(a.err)
		}
		t.Cleanup(func() { _ = a.hold.Release(context.Background()) })
		return a.hold
	case <-time.After(2 * longWait):
		t.Fatal("Go did not get the lock")
	}
	return nil
}

func javaEntersTwice(t *testing.T, s side, java *worker) {
	key := newKey()
	java.acquire(t, key)
	java.acquire(t, key)
	java.want(t, s.count(2), "count", key)
	refused(t, s, key)

	java.want(t, "released", "release", key)
	java.want(t, s.count(1), "count", key)
	refused(t, s, key) // Java still has one acquisition

	answer := await(t, s, key, "go")
	soon(t, "Go waits", func() bool { return s.waiting(t, key) })
	java.want(t, "released", "release", key)
	release(t, follows(t, answer))
	java.want(t, s.count(0), "count", key)
}

func goEntersTwice(t *testing.T, s side, java *worker) {
	key := newKey()
	first := acquire(t, s, key, "go", 0)
	second := acquire(t, s, key, "go", 0)
	java.want(t, "timeout", "acquire", key, "0")
	release(t, second)
	java.want(t, "timeout", "acquire", key, "0") // Go still has one acquisition

	java.send(t, "acquire", key, millis(longWait))
	soon(t, "Java waits", func() bool { return s.waiting(t, key) })
	release(t, first)
	java.wantAnswer(t, "granted", "acquire")
	java.want(t, "released", "release", key)
}

func timedOut(t *testing.T, s side, java *worker) {
	const wait = 300 * time.Millisecond
	key := newKey()
	hold := acquire(t, s, key, "go", 0)
	java.want(t, "timeout", "acquire", key, millis(wait))
	release(t, hold)
	if !s.free(t, key) {
		t.Fatal("the lock is not free after a wait of Java has timed out")
	}

	java.acquire(t, key)
	began := time.Now()
	_, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: "go", Wait: wait})
	if !errors.Is(err, locks.ErrNotAcquired) || time.Since(began) < wait {
		t.Fatalf("want ErrNotAcquired after %v, got %v after %v", wait, err, time.Since(began))
	}
	java.want(t, "released", "release", key)
	if !s.free(t, key) {
		t.Fatal("the lock is not free after a wait of Go has timed out")
	}
}

func foreignRelease(t *testing.T, s side, java *worker) {
	key := newKey()
	hold := acquire(t, s, key, "go", 0)
	java.want(t, s.count(0), "count", key)
	java.send(t, "release", key)
	if answer := java.answer(t); !strings.HasPrefix(answer, "error: java.lang.IllegalMonitorStateException") {
		t.Fatalf("Java released what Go holds: %s", answer)
	}
	java.want(t, "timeout", "acquire", key, "0")
	release(t, hold) // would return ErrNotHeld if Java had released it
}

// amongBusyTasks checks that Java gets the lock while several Go owners acquire it in a loop.
func amongBusyTasks(t *testing.T, s side, java *worker) {
	key := newKey()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var tasks sync.WaitGroup
	for _, owner := range []string{"go-1", "go-2", "go-3", "go-4"} {
		tasks.Go(func() {
			for ctx.Err() == nil {
				h, err := s.locker.Acquire(ctx, locks.Request{Key: key, Owner: owner, Wait: longWait})
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if err := h.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		java.acquire(t, key)
		java.want(t, "released", "release", key)
	}
	stop()
	tasks.Wait()
}

func javaDies(t *testing.T, s side, versions string) {
	key := newKey()
	java := startWorker(t, versions, s, short)
	java.acquire(t, key)
	answer := await(t, s, key, "go")
	soon(t, "Go waits", func() bool { return s.waiting(t, key) })
	java.kill(t)
	release(t, follows(t, answer))
}
