// Command redsync is an adapter for github.com/go-redsync/redsync on one Redis, or on the servers of
// REDLOCK_URLS with the argument 5. It follows https://pkg.go.dev/github.com/go-redsync/redsync/v4.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/adapter"
	"oversell/stock"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	urls, backend := os.Getenv("REDIS_URL"), "redis"
	if len(os.Args) > 1 && os.Args[1] == "5" {
		urls, backend = os.Getenv("REDLOCK_URLS"), "redlock"
	}
	l := &locker{backend: backend, lease: 8 * time.Second} // redsync's default
	if ms, err := strconv.Atoi(os.Getenv("LEASE_MS")); err == nil {
		l.lease = time.Duration(ms) * time.Millisecond
	}
	var pools []pool.Pool
	for _, url := range strings.Split(cmp.Or(urls, "redis://127.0.0.1:6379/0"), ",") {
		o, err := redis.ParseURL(url)
		if err != nil {
			return err
		}
		client := redis.NewClient(o)
		l.clients, pools = append(l.clients, client), append(pools, goredis.NewPool(client))
	}
	l.sync = redsync.New(pools...)
	hello := adapter.Hello{
		Hello: adapter.Version, Library: "redsync", Version: "4.18.0", Language: "Go", Backends: []string{backend},
		Document:     "https://pkg.go.dev/github.com/go-redsync/redsync/v4",
		Capabilities: adapter.Capabilities{Lease: true, LeasePerRequest: true}, // it renews only by Extend
	}
	return adapter.Serve(context.Background(), os.Stdin, os.Stdout, hello, l)
}

type locker struct {
	backend string
	lease   time.Duration
	clients []*redis.Client
	sync    *redsync.Redsync
}

func (l *locker) Card() api.Card { return api.Card{} } // the hello has the claims

func (l *locker) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	const many = 1_000_000 // attempts; the wait limits them
	m := l.sync.NewMutex("lock:"+r.Key, redsync.WithExpiry(cmp.Or(r.Lease, l.lease)), redsync.WithTries(many))
	var err error
	if r.Wait <= 0 {
		err = m.TryLockContext(ctx)
	} else {
		waiting, cancel := context.WithTimeout(ctx, r.Wait)
		defer cancel()
		err = m.LockContext(waiting)
	}
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
		return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Asked: time.Now(), Release: func(ctx context.Context) error {
			return l.release(ctx, m)
		}}), nil
	case errors.As(err, &taken), errors.Is(err, redsync.ErrFailed), errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	default:
		return nil, &stock.Unavailable{Backend: l.backend, Err: err}
	}
}

func (l *locker) release(ctx context.Context, m *redsync.Mutex) error {
	var taken *redsync.ErrTaken
	ok, err := m.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) || !ok && err == nil {
		return locks.ErrNotHeld
	}
	return err
}

// Clear deletes the key on all servers.
func (l *locker) Clear(ctx context.Context, key string) error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Del(ctx, "lock:"+key).Err())
	}
	return errors.Join(errs...)
}
