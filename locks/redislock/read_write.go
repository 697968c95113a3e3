package redislock

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"oversell/locks"
	"oversell/stock"
)

//go:embed read_write_read.lua
var readWriteReadLua string

//go:embed read_write_write.lua
var readWriteWriteLua string

//go:embed read_write_renew.lua
var readWriteRenewLua string

//go:embed read_write_release.lua
var readWriteReleaseLua string

// readWrite is a read-write lock (tutorial 3.9.5): sorted sets of the readers'
// and the writer's holds, each with its own deadline. Redisson has one time-out
// for all readers, so a dead one stays for as long as any other reads.
//
// Writers go first: one that waits keeps new readers out, and so a stream of
// writers can keep them out for long. A reader that reads again never waits:
// the writer waits for its first read, and both would wait for ever.
type readWrite struct {
	*primitive
	read, write, renew, release *redis.Script
	// Of all that wait in this process, one reader and one writer ask Redis.
	readers, writers locks.FIFOMutex

	mu    sync.Mutex
	lines map[string]*line
}

// line is all the writers of this process that wait for a key. They share one
// entry in Redis, which stays until the last of them has left: a reader that
// came later must not slip in where one writer gives up and the next is still there.
type line struct {
	id      string
	writers int
	known   bool // to Redis
}

func newReadWrite(p *primitive) *readWrite {
	return &readWrite{
		primitive: p, lines: map[string]*line{},
		read: redis.NewScript(readWriteReadLua), write: redis.NewScript(readWriteWriteLua),
		renew: redis.NewScript(readWriteRenewLua), release: redis.NewScript(readWriteReleaseLua),
	}
}

// readWriteNames are the keys of one lock; waiting has the lines of writers.
func readWriteNames(key string) (readers, writers, waiting string) {
	base := primitivePrefix + "rw:{" + key + "}"
	return base + ":readers", base + ":writers", base + ":waiting"
}

// Read waits while another owner writes, or waits to write.
func (l *readWrite) Read(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	readers, writers, waiting := readWriteNames(r.Key)
	token, lease := locks.Token(r.Owner), l.life(r)
	w := l.wish(r, readers, token)
	w.try = func(ctx context.Context) (bool, time.Duration, error) {
		return answer(l.read.Run(ctx, l.client, []string{readers, writers, waiting}, token, lease.Milliseconds()))
	}
	return l.acquire(ctx, r, &l.readers, func(bool) wish { return w })
}

// Write waits while another owner reads or writes. An owner that reads already,
// and does not write, gets locks.ErrUpgrade.
func (l *readWrite) Write(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	readers, writers, waiting := readWriteNames(r.Key)
	token, lease := locks.Token(r.Owner), l.life(r)
	mine, patience := &line{}, time.Duration(0)
	if r.Wait > 0 {
		mine, patience = l.join(r.Key), l.lease
		defer l.part(ctx, r.Key, mine)
	}
	return l.acquire(ctx, r, &l.writers, func(first bool) wish {
		w := l.wish(r, writers, token)
		w.try = func(ctx context.Context) (bool, time.Duration, error) {
			granted, busy, err := answer(l.write.Run(ctx, l.client, []string{readers, writers, waiting},
				token, lease.Milliseconds(), mine.id, patience.Milliseconds(), first))
			if !granted {
				l.mu.Lock()
				mine.known = true
				l.mu.Unlock()
			}
			// The entry of the line is leased, too: a dead process keeps nobody out.
			return granted, min(busy, l.lease/3), err
		}
		return w
	})
}

// acquire looks once outside the line: who holds the lock already must not queue
// behind those that wait for it. Then the first in line looks until it is granted.
func (l *readWrite) acquire(ctx context.Context, r locks.Request, turns *locks.FIFOMutex, ask func(first bool) wish) (*locks.Lock, error) {
	if ctx.Err() != nil {
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	began := time.Now()
	h, _, err := l.look(ctx, r, ask(false))
	if h != nil || err != nil {
		return h, err
	}
	if r.Wait == 0 {
		return nil, locks.NotAcquired(ctx, r.Key, 0)
	}
	leave, err := turns.Take(ctx, r.Key, max(0, r.Wait-time.Since(began)))
	if err != nil {
		return nil, err
	}
	defer leave()
	h, err = l.take(ctx, r, began, ask(true))
	if errors.Is(err, stock.ErrUnavailable) {
		turns.Fail(r.Key, err)
	}
	return h, err
}

// wish lacks only its try. set is where the token of the hold will be.
func (l *readWrite) wish(r locks.Request, set, token string) wish {
	_, writers, _ := readWriteNames(r.Key)
	channel, lease := primitiveChannel(set), l.life(r)
	return wish{channel: channel, grant: locks.Grant{
		Key: r.Key, Owner: r.Owner, Lease: lease,
		Renew: func(ctx context.Context) error {
			return held(l.renew.Run(ctx, l.client, []string{set}, token, lease.Milliseconds()).Int64())
		},
		Release: func(ctx context.Context) error {
			return held(l.release.Run(ctx, l.client, []string{set, writers, channel}, token).Int64())
		},
	}}
}

// join adds a writer to the key's line. A new line has a new name: the farewell
// of the one before may still be under way to Redis.
func (l *readWrite) join(key string) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines[key] == nil {
		l.lines[key] = &line{id: uuid.NewString()}
	}
	l.lines[key].writers++
	return l.lines[key]
}

// part takes a writer out of its line, granted or not; the last one takes the
// line out of Redis.
func (l *readWrite) part(ctx context.Context, key string, mine *line) {
	l.mu.Lock()
	mine.writers--
	empty := mine.writers == 0
	if empty {
		delete(l.lines, key)
	}
	known := mine.known
	l.mu.Unlock()
	if !empty || !known {
		return
	}
	_, writers, waiting := readWriteNames(key)
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = l.release.Run(clean, l.client, []string{waiting, writers, primitiveChannel(waiting)}, mine.id).Err()
}

// answer reads what the scripts for reading and writing say.
func answer(reply *redis.Cmd) (granted bool, busy time.Duration, err error) {
	said, err := reply.Int64Slice()
	switch {
	case err != nil:
		return false, 0, err
	case said[0] < 0:
		return false, 0, locks.ErrUpgrade
	}
	return said[0] == 1, time.Duration(said[1]) * time.Millisecond, nil
}
