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

// TestSharedWithJava runs every proof with both locks, on today's libraries and on
// the tutorial's.
func TestSharedWithJava(t *testing.T) {
	proofs := []struct {
		name string
		run  func(*testing.T, side, *worker)
	}{
		{"Go releases, Java is woken", javaIsWoken},
		{"Java releases, Go is woken", goIsWoken},
		{"Java enters twice", javaEntersTwice},
		{"Go enters twice", goEntersTwice},
		{"whoever waits in vain leaves nothing", inVain},
		{"Java can't release what Go holds", strangers},
		{"Java gets its turn among busy Go tasks", amongBusyTasks},
		{"2000 mixed deductions", mixedDeductions},
		{"a replica dies, Java follows", replicaDies},
	}
	for _, versions := range []string{"current", "tutorial"} {
		for _, s := range []side{onRedis(t), onZooKeeper(t)} {
			t.Run(versions+"/"+s.strategy, func(t *testing.T) {
				java := startWorker(t, versions, s, lease)
				for _, proof := range proofs {
					if !t.Run(proof.name, func(t *testing.T) { proof.run(t, s, java) }) {
						t.Fatal("what follows would only follow from this")
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
	java.tell(t, "acquire", key, millis(patience))
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

// wokenSince fails when a waiter may have waited for the end of a lease: each holder
// renews its own every third, so one that was released had most of it left.
func wokenSince(t *testing.T, released time.Time) {
	t.Helper()
	if waited := time.Since(released); waited > lease/2 {
		t.Fatalf("granted %v after the release: nobody was woken", waited)
	}
}

// refused asks once for a lock that Java holds.
func refused(t *testing.T, s side, key string) {
	t.Helper()
	h, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: "go's rival"})
	if err == nil {
		release(t, h)
	}
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Fatalf("Java holds: want ErrNotAcquired, got %v", err)
	}
}

// follows returns the hold of a waiter that await has sent.
func follows(t *testing.T, answer <-chan granted) *locks.Lock {
	t.Helper()
	select {
	case a := <-answer:
		if a.err != nil {
			t.Fatal(a.err)
		}
		t.Cleanup(func() { _ = a.hold.Release(context.Background()) })
		return a.hold
	case <-time.After(2 * patience):
		t.Fatal("Go has waited without end")
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
	refused(t, s, key) // one is left

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
	java.want(t, "timeout", "acquire", key, "0") // one is left

	java.tell(t, "acquire", key, millis(patience))
	soon(t, "Java waits", func() bool { return s.waiting(t, key) })
	release(t, first)
	java.wantAnswer(t, "granted", "acquire")
	java.want(t, "released", "release", key)
}

func inVain(t *testing.T, s side, java *worker) {
	const wait = 300 * time.Millisecond
	key := newKey()
	hold := acquire(t, s, key, "go", 0)
	java.want(t, "timeout", "acquire", key, millis(wait))
	release(t, hold)
	if !s.free(t, key) {
		t.Fatal("Java, which has waited in vain, left something")
	}

	java.acquire(t, key)
	began := time.Now()
	_, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: "go", Wait: wait})
	if !errors.Is(err, locks.ErrNotAcquired) || time.Since(began) < wait {
		t.Fatalf("want ErrNotAcquired after %v, got %v after %v", wait, err, time.Since(began))
	}
	java.want(t, "released", "release", key)
	if !s.free(t, key) {
		t.Fatal("Go, which has waited in vain, left something")
	}
}

func strangers(t *testing.T, s side, java *worker) {
	key := newKey()
	hold := acquire(t, s, key, "go", 0)
	java.want(t, s.count(0), "count", key)
	java.tell(t, "release", key)
	if answer := java.answer(t); !strings.HasPrefix(answer, "error: java.lang.IllegalMonitorStateException") {
		t.Fatalf("Java released what Go holds: %s", answer)
	}
	java.want(t, "timeout", "acquire", key, "0")
	release(t, hold) // ErrNotHeld, had it been released
}

// amongBusyTasks: a replica may hand its redis lock from task to task a few times
// without a message. A stranger who sleeps must hear of it in the end.
func amongBusyTasks(t *testing.T, s side, java *worker) {
	key := newKey()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var tasks sync.WaitGroup
	for _, owner := range []string{"go-1", "go-2", "go-3", "go-4"} {
		tasks.Go(func() {
			for ctx.Err() == nil {
				h, err := s.locker.Acquire(ctx, locks.Request{Key: key, Owner: owner, Wait: patience})
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
