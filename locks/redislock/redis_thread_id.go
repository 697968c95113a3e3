package redislock

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

//go:embed redis_thread_id_release.lua
var threadIDReleaseLua string

// ThreadID stores the holder's thread number. To release, one script compares the number (001).
func ThreadID(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return &redisThreadID{polledLock: polledLock{c, "redis-thread-id:", lease}, release: redis.NewScript(threadIDReleaseLua)}
}

type redisThreadID struct {
	polledLock
	threads threads
	release *redis.Script
}

func (l *redisThreadID) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lock, lease := l.of(r)
	// DANGER: the number is unique in this process only. Other replicas have a thread 1, too. If
	// a thread with our number gets the lock after our lease, our release finds the number that
	// it expects. The release then frees the lock of another holder.
	number, leave := l.threads.enter(r.Key)
	h, err := attempt{
		take:  func(ctx context.Context) (bool, error) { return l.client.SetNX(ctx, lock, number, lease).Result() },
		pause: 100 * time.Millisecond,
		// The Grant has no Lease, so this holder does not notice the end of its lease.
		grant: locks.Grant{
			Release: func(ctx context.Context) error { return run(ctx, l.client, l.release, []string{lock}, number) },
		},
	}.acquire(ctx, r)
	if err != nil {
		leave()
		return nil, err
	}
	h.OnRelease(leave)
	return h, nil
}

// threads numbers this process's tasks for each key, because a goroutine has no visible number. A
// task keeps the smallest free number from 1 on until its release, like a thread of a pool.
type threads struct {
	mu   sync.Mutex
	busy map[thread]bool
}

type thread struct {
	key    string
	number int
}

func (t *threads) enter(key string) (number int, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy == nil {
		t.busy = map[thread]bool{}
	}
	mine := thread{key, 1}
	for t.busy[mine] {
		mine.number++
	}
	t.busy[mine] = true
	return mine.number, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, mine)
	}
}

func (*redisThreadID) Card() api.Card {
	return card(api.Card{
		ID: "redis-thread-id", Source: "001", Lease: true, LeasePerRequest: true, Unchecked: true, Slow: true,
		Title: api.Text{EN: "The thread's number as value", ZH: "以线程号为值"},
		Summary: api.Text{
			EN: "The value is the number of the thread, compared and deleted in one script; each process has a thread 1.",
			ZH: "值是线程号，用脚本比较并删除；可是每个进程都有 1 号线程。",
		},
		When: api.Text{
			EN: "Not for production: replicas use the same thread numbers, so one can free another's lock. Use `redis` instead.",
			ZH: "不要用于生产环境：各副本的线程号会重复，可能误删别的副本的锁。请改用 `redis`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash},
		Breaks: []api.Break{
			{Hazard: api.ForeignUnlock, Why: api.Text{
				EN: "Two replicas use the same numbers: a holder whose lease has expired frees the lock of the thread with its number on another replica.",
				ZH: "两个副本的线程号会重复，超过租期的持有者会释放另一个副本上同号线程的锁。",
			}},
			{Hazard: api.LostReply, Why: api.Text{
				EN: "After a SET whose answer is lost, the number in the key may be that of another replica: the key stays, and blocks for a lease.",
				ZH: "SET 的应答丢了，键里的号码可能属于另一个副本，不能删，要等一个租期。",
			}},
		},
	}, api.Overrun, api.Pause, api.Nesting, api.Polling, api.Failover, api.ClockJump, api.Operator, api.Starved)
}
