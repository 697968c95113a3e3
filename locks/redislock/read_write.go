package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

var (
	//go:embed read_write_read.lua
	readWriteReadLua string
	//go:embed read_write_write.lua
	readWriteWriteLua string
	//go:embed read_write_renew.lua
	readWriteRenewLua string
	//go:embed read_write_release.lua
	readWriteReleaseLua string
)

// readWrite is a read-write lock (tutorial 3.9.5). One sorted set stores the readers' tokens, and
// another one the writer's, each with its own deadline. In Redisson, all readers share one
// time-out, so a dead reader blocks writers while any other reader lives. A waiting writer blocks
// new readers, but an owner with a read lock gets a second one at once. Otherwise the second read
// would wait for the writer, and the writer for the first read: a deadlock.
type readWrite struct {
	*primitive
	read, write, renew, release *redis.Script
	// For each key, only one waiting reader and one waiting writer of this process send requests.
	readers, writers locks.FIFOMutex

	mu      sync.Mutex
	waiting map[string]*writerGroup
}

// writerGroup counts this process's waiting writers of a key, which share one entry in Redis. Only
// the last writer removes the entry, or later readers could overtake the other writers.
type writerGroup struct {
	id      string
	writers int
	stored  bool // the entry is in Redis
}

func newReadWrite(p *primitive) *readWrite {
	return &readWrite{
		primitive: p, waiting: map[string]*writerGroup{},
		read: redis.NewScript(readWriteReadLua), write: redis.NewScript(readWriteWriteLua),
		renew: redis.NewScript(readWriteRenewLua), release: redis.NewScript(readWriteReleaseLua),
	}
}

// readWriteNames returns the keys of one lock. waiting is the set of the groups of waiting writers.
func readWriteNames(prefix, key string) (readers, writers, waiting string) {
	base := prefix + "rw:{" + key + "}"
	return base + ":readers", base + ":writers", base + ":waiting"
}

// Read acquires the lock for reading. It waits while another owner writes or waits to write.
func (l *readWrite) Read(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	readers, writers, waiting := readWriteNames(l.prefix, r.Key)
	token, lease := locks.Token(r.Owner), cmp.Or(r.Lease, l.lease)
	w := l.want(r, readers, token)
	w.try = func(ctx context.Context) (bool, time.Duration, error) {
		return readWriteAnswer(l.read.Run(ctx, l.client, []string{readers, writers, waiting}, token, lease.Milliseconds()))
	}
	return l.acquire(ctx, r, &l.readers, func(bool) want { return w })
}

// Write waits while another owner reads or writes. A mere reader gets locks.ErrUpgrade.
func (l *readWrite) Write(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	readers, writers, waiting := readWriteNames(l.prefix, r.Key)
	token, lease := locks.Token(r.Owner), cmp.Or(r.Lease, l.lease)
	mine, life := &writerGroup{}, time.Duration(0) // life is the lease of our entry in waiting
	if r.Wait > 0 {
		mine, life = l.join(r.Key), l.lease
		defer l.part(ctx, r.Key, mine)
	}
	return l.acquire(ctx, r, &l.writers, func(first bool) want {
		w := l.want(r, writers, token)
		w.try = func(ctx context.Context) (bool, time.Duration, error) {
			granted, busy, err := readWriteAnswer(l.write.Run(ctx, l.client, []string{readers, writers, waiting},
				token, lease.Milliseconds(), mine.id, life.Milliseconds(), first))
			if !granted {
				l.mu.Lock()
				mine.stored = true
				l.mu.Unlock()
			}
			// The group's entry has a lease, in case this process dies. Each try renews this lease.
			return granted, min(busy, l.lease/3), err
		}
		return w
	})
}

// acquire tries once before it queues. An owner that holds the lock already must not queue behind
// requests that wait for this lock. Only the first request in the queue repeats its try.
func (l *readWrite) acquire(ctx context.Context, r locks.Request, turns *locks.FIFOMutex, ask func(first bool) want) (*locks.Lock, error) {
	if ctx.Err() != nil {
		return nil, locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	began := time.Now()
	h, _, err := l.tryOnce(ctx, r, ask(false))
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
	return l.takeAsFirst(ctx, r, began, turns, ask(true))
}

// want describes an acquisition, but lacks try. set is the Redis key of the token's sorted set.
func (l *readWrite) want(r locks.Request, set, token string) want {
	_, writers, _ := readWriteNames(l.prefix, r.Key)
	channel, lease := primitiveChannel(set), cmp.Or(r.Lease, l.lease)
	return want{channel: channel, grant: locks.Grant{
		Key: r.Key, Owner: r.Owner, Lease: lease,
		Renew: func(ctx context.Context) error {
			return run(ctx, l.client, l.renew, []string{set}, token, lease.Milliseconds())
		},
		Release: func(ctx context.Context) error {
			return run(ctx, l.client, l.release, []string{set, writers, channel}, token)
		},
	}}
}

// join adds a writer to the key's group. A new group has a new name, because the request that
// deletes the old group may still be on its way to Redis.
func (l *readWrite) join(key string) *writerGroup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[key] == nil {
		l.waiting[key] = &writerGroup{id: uuid.NewString()}
	}
	l.waiting[key].writers++
	return l.waiting[key]
}

// part removes a writer from its group. The last writer deletes the group's entry in Redis.
func (l *readWrite) part(ctx context.Context, key string, mine *writerGroup) {
	l.mu.Lock()
	mine.writers--
	empty := mine.writers == 0
	if empty {
		delete(l.waiting, key)
	}
	stored := mine.stored
	l.mu.Unlock()
	if !empty || !stored {
		return
	}
	_, writers, waiting := readWriteNames(l.prefix, key)
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = l.release.Run(clean, l.client, []string{waiting, writers, primitiveChannel(waiting)}, mine.id).Err()
}

func readWriteAnswer(cmd *redis.Cmd) (granted bool, busy time.Duration, err error) {
	answer, err := cmd.Int64Slice()
	if err == nil && answer[0] < 0 {
		err = locks.ErrUpgrade
	}
	if err != nil {
		return false, 0, err
	}
	return answer[0] == 1, time.Duration(answer[1]) * time.Millisecond, nil
}
