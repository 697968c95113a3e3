// Command go-zookeeper is an adapter for the Lock of github.com/go-zookeeper/zk.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/adapters/library"
	"oversell/locks"
	"oversell/stock"
)

func main() {
	hello := library.Hello("go-zookeeper Lock", "1.0.4", "https://pkg.go.dev/github.com/go-zookeeper/zk@v1.0.4#Lock", "zookeeper")
	c := &hello.Capabilities
	c.Lease, c.Renewal, c.LossNotice = true, true, true // the session's events have its end
	library.Serve(hello, &locker{expired: make(chan struct{})})
}

type locker struct {
	library.NoCard
	mu      sync.Mutex
	conn    *zk.Conn      // nil until the first request
	expired chan struct{} // closed at the end of the current session
}

// open returns the connection, and a channel that is closed when the current session has expired.
// The library then connects with a new session by itself.
func (l *locker) open() (*zk.Conn, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		return l.conn, l.expired, nil
	}
	conn, events, err := zk.Connect(library.Servers("ZK_SERVERS", "127.0.0.1:2181"), library.Milliseconds("SESSION_MS", 10*time.Second), zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	l.conn = conn
	go func() {
		for e := range events {
			if e.State == zk.StateExpired {
				l.mu.Lock()
				close(l.expired)
				l.expired = make(chan struct{})
				l.mu.Unlock()
			}
		}
	}()
	return conn, l.expired, nil
}

// oneTry is the time that a request without a wait has for its grant: Lock has no try.
const oneTry = 500 * time.Millisecond

// Acquire waits for Lock no longer than the wait. Lock itself cannot be cancelled: it stays in the
// queue, and its lock is released when it is granted.
func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	conn, expired, err := l.open()
	if err != nil {
		return nil, &stock.Unavailable{Backend: "zookeeper", Err: err}
	}
	lock := zk.NewLock(conn, "/adapter/"+r.Key, zk.WorldACL(zk.PermAll))
	granted := make(chan error, 1)
	go func() { granted <- lock.Lock() }()
	waiting, cancel := context.WithTimeout(ctx, max(r.Wait, oneTry))
	defer cancel()
	select {
	case err := <-granted:
		if err != nil {
			return nil, &stock.Unavailable{Backend: "zookeeper", Err: err}
		}
		return library.Noticed(ctx, r, expired, func(context.Context) error { return unlock(lock) }), nil
	case <-waiting.Done():
		go func() {
			if <-granted == nil {
				_ = lock.Unlock()
			}
		}()
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
}

func unlock(lock *zk.Lock) error {
	err := lock.Unlock()
	if errors.Is(err, zk.ErrNotLocked) || errors.Is(err, zk.ErrNoNode) {
		return locks.ErrNotHeld
	}
	return err
}

// Clear deletes the nodes of the holder and of all waiters.
func (l *locker) Clear(_ context.Context, key string) error {
	conn, _, err := l.open()
	if err != nil {
		return err
	}
	path := "/adapter/" + key
	nodes, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, node := range nodes {
		if gone := conn.Delete(path+"/"+node, -1); gone != nil && !errors.Is(gone, zk.ErrNoNode) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
