package interop

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
)

const (
	// lease is that of a holder who is not to die: whoever is granted the lock long
	// before this has passed was woken, and did not wait for an expiry.
	lease = time.Minute
	// patience of a waiter who is to be woken.
	patience = 2 * time.Minute
	// short is the lease, and the session's time-out, of a holder who will be killed.
	short = 4 * time.Second
)

var servers *rig.Rig

// silent drops what the driver says besides the errors that it returns.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	// Where it is missing, the rig says so: make interop builds it.
	binary, err := filepath.Abs("../bin/oversell")
	if err != nil {
		panic(err)
	}
	rigtest.MainWith(m, rig.Config{
		MySQL: true, Redis: 1, Zookeeper: true,
		Replicas: 2, Binary: binary, Token: uuid.NewString(),
		ReplicaArgs: []string{"--lease", short.String(), "--zk-session", short.String()},
	}, func(r *rig.Rig) { servers = r })
}

// side is one lock as both languages know it, and what its server shows of it.
type side struct {
	strategy string // the id, by which the replicas and the Java program know it too
	address  string // for the Java program
	locker   locks.Locker
	// waiting says whether somebody waits for a lock that is held.
	waiting func(t *testing.T, key string) bool
	// free says whether nothing is left of the lock: no holder, no waiter.
	free func(t *testing.T, key string) bool
	// count is what the Java library tells a holder that has entered n times.
	count func(n int) string
}

// newKey is a key that no other test uses.
func newKey() string { return "stock:" + uuid.NewString() }

// soon returns when what is true, and fails when it never is.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("never: %s", what)
		}
	}
}

func acquire(t *testing.T, s side, key, owner string, wait time.Duration) *locks.Lock {
	t.Helper()
	h, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: owner, Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

func release(t *testing.T, h *locks.Lock) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// granted is what a waiter got that began to wait in the background.
type granted struct {
	hold *locks.Lock
	err  error
}

// await acquires in the background.
func await(t *testing.T, s side, key, owner string) <-chan granted {
	t.Helper()
	answer := make(chan granted, 1)
	go func() {
		h, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: owner, Wait: patience})
		answer <- granted{h, err}
	}()
	return answer
}
