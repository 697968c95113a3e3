// Package interop tests that a Java service and a Go replica can share a lock. The strategy redis
// is compatible with Redisson's RLock, and zk with Curator's InterProcessMutex. The tests run a
// small Java program with the libraries' current versions and with the tutorial's. Another test runs the
// Spring Boot program in the folder spring beside a lab, as a student does. TestVegeta compares the load generator of
// `oversell run` with another one.
//
//	make interop
//
// Java and Go need only use the same name of the lock:
//
//	strategy  Java                                                Go
//	redis     client.getLock("redis:stock:1")                     key stock:1
//	zk        new InterProcessMutex(curator, "/oversell/zk/stock:1")  key stock:1
//
// # What is shared and what is not
//
// Java and Go share the lock, the queue, the notification of waiters, the lease, and its expiry
// after the holder's death. Each side counts its own re-entries. Only Go has fencing tokens, so the
// row does not reject the late write of a Java holder.
//
// On a Redis Cluster, Redisson may publish with SPUBLISH. Java and Go would then not be notified of
// each other's releases. The strategy redis is for a single Redis.
package interop

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9/logging"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
)

const (
	// lease is the lease of holders that stay alive. If a waiter gets the lock long before the
	// lease ends, the waiter was notified and did not wait for the expiry.
	lease = time.Minute
	// longWait is the longest wait of waiters that must get the lock.
	longWait = 2 * time.Minute
	// short is the lease, or the time-out of the session, of holders that a test kills.
	short = 4 * time.Second
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	logging.Disable() // the client also returns the errors
	binary, err := filepath.Abs("../bin/oversell")
	if err != nil {
		panic(err)
	}
	rigtest.MainWith(m, rig.Config{
		MySQL: true, Redis: 1, Zookeeper: 1, Etcd: 1, // all: a replica is then ready
		Replicas: 2, Nginx: true, Binary: binary, Token: uuid.NewString(),
		ReplicaArgs: []string{"--lease", short.String(), "--zk-session", short.String()},
	}, func(r *rig.Rig) { servers = r })
}

// side is a lock that Go and Java share, with functions that inspect the lock's server.
type side struct {
	strategy string // the strategy's id, also used for the replicas and the Java program
	address  string // for the Java program
	locker   locks.Locker
	// waiting reports whether a request waits for the held lock.
	waiting func(t *testing.T, key string) bool
	// free reports whether the lock has no holder and no waiter.
	free func(t *testing.T, key string) bool
	// count returns the answer that the Java command count must give after n acquisitions in Java.
	count func(n int) string
}

// newKey returns a key that no other test uses.
func newKey() string { return "stock:" + uuid.NewString() }

// soon calls the function is until it returns true. After longWait, soon fails the test.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > longWait {
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

// granted is the result of an acquisition in the background.
type granted struct {
	hold *locks.Lock
	err  error
}

// await acquires the lock in the background, and sends the result to the returned channel.
func await(t *testing.T, s side, key, owner string) <-chan granted {
	t.Helper()
	answer := make(chan granted, 1)
	go func() {
		h, err := s.locker.Acquire(t.Context(), locks.Request{Key: key, Owner: owner, Wait: longWait})
		answer <- granted{h, err}
	}()
	return answer
}
