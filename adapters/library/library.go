// Package library has what the adapters of Go libraries share: they start, read their environment,
// and limit the wait of an acquisition in the same way.
package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/redislock"
	"oversell/stock"
	"oversell/trial/adapter"
)

// Hello returns the hello of a Go library, without capabilities. document is the address of the
// documentation that the adapter follows.
func Hello(name, version, document string, backends ...string) adapter.Hello {
	return adapter.Hello{Hello: adapter.Version, Library: name, Version: version, Language: "Go", Document: document, Backends: backends}
}

// Must returns what a library has opened, or ends the program, see Check.
func Must[T any](opened T, err error) T {
	Check(err)
	return opened
}

// Check prints an error, and ends the program with 2.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// Serve serves the locker on the standard streams, until the input ends.
func Serve(h adapter.Hello, l locks.Locker) {
	// A Ctrl-C in the terminal reaches this process too, but the laboratory ends it.
	signal.Ignore(syscall.SIGINT)
	Check(adapter.Serve(context.Background(), os.Stdin, os.Stdout, h, l))
}

// Incident runs the program of an incident, for a minute at most. It prints right if the fault does not show, and
// otherwise prints wrong and exits with 1. An error exits with 2.
func Incident(reproduce func(context.Context) bool, right, wrong string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	is := reproduce(ctx)
	cancel()
	if !is {
		fmt.Println(wrong)
		os.Exit(1)
	}
	fmt.Println(right)
}

// NoCard is the card of an adapter's locker, whose claims are in its hello.
type NoCard struct{}

// Card returns an empty card.
func (NoCard) Card() api.Card { return api.Card{} }

// Servers returns the addresses in the variable of the environment, or otherwise the only address.
func Servers(variable, otherwise string) []string {
	all := strings.Split(cmp.Or(os.Getenv(variable), otherwise), ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// Redis returns the client of the Redis in REDIS_URL: of one server, behind Sentinel, or of a cluster.
func Redis() redis.UniversalClient {
	return redis.NewUniversalClient(Must(redislock.Options(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))))
}

// Milliseconds returns the variable of the environment, or otherwise.
func Milliseconds(variable string, otherwise time.Duration) time.Duration {
	if ms, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return otherwise
}

// Lasting returns a context for a library whose lock ends with the context of its acquisition. The
// context ends with ctx, or after wait. After a call of keep, only cancel ends it. keep returns
// false if it has ended before.
func Lasting(ctx context.Context, wait time.Duration) (lasting context.Context, keep func() bool, cancel context.CancelFunc) {
	lasting, cancel = context.WithCancel(context.WithoutCancel(ctx))
	timer, stop := time.AfterFunc(wait, cancel), context.AfterFunc(ctx, cancel)
	return lasting, func() bool { return timer.Stop() && stop() }, cancel
}

// Failed returns the error of an acquisition: not acquired if refused, or if ctx or the wait has
// ended, otherwise that the backend is unavailable.
func Failed(ctx context.Context, r locks.Request, backend string, refused bool, err error) error {
	if refused || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: backend, Err: err}
}

// Lock returns the lock of a library that does not notice the end of its lease.
func Lock(ctx context.Context, r locks.Request, release func(context.Context) error) *locks.Lock {
	return locks.NewLock(ctx, locks.Grant{Key: r.Key, Owner: r.Owner, Release: release})
}

// Noticed returns the lock of a library that closes lost at the end of its lease.
func Noticed(ctx context.Context, r locks.Request, lost <-chan struct{}, release func(context.Context) error) *locks.Lock {
	ended := func(context.Context) error {
		select {
		case <-lost:
			return locks.ErrNotHeld
		default:
			return nil
		}
	}
	l := locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Verify: ended,
		Release: func(ctx context.Context) error { return errors.Join(ended(ctx), release(ctx)) },
	})
	go func() {
		select {
		case <-lost:
			l.MarkLost(locks.ErrNotHeld)
		case <-l.Context().Done():
		}
	}()
	return l
}
