package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
)

var (
	//go:embed redis_fair_head.lua
	fairHeadLua string
	//go:embed redis_fair_take.lua
	fairTakeLua string
	//go:embed redis_fair_leave.lua
	fairLeaveLua string
	//go:embed redis_fair_beat.lua
	fairBeatLua string
)

const (
	// fairLife is the life of a waiter in the queue after its last refresh, on Redis's clock.
	// Waiters that die together expire together. Redisson waits 5 s for each dead waiter.
	fairLife = 5 * time.Second
	// fairBeat is the interval at which a process refreshes its waiters. A dead waiter delays the
	// next waiter by fairLife + fairBeat at most, under 7 s.
	fairBeat = fairLife / 3
	// fairBatch is the largest number of waiters that one script refreshes.
	fairBatch = 500
)

// Fair returns a lock like Redisson's fair lock (tutorial 3.9.2). It works like the strategy redis,
// but all waiters of all replicas are in one queue in Redis. A release wakes only the first waiter.
// Fair does not use locks.Queue, with which only one waiter of each process would be in that queue.
// Waiters of other processes would overtake the rest.
func Fair(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Reentrant(newFair(c, lease))
}

func newFair(c redis.UniversalClient, lease time.Duration) *fairLock {
	l := &fairLock{
		redisLock: newRedisLock(c, lease), waiting: map[string]map[string]bool{},
		take: redis.NewScript(fairHeadLua + fairTakeLua), leave: redis.NewScript(fairHeadLua + fairLeaveLua),
		beat: redis.NewScript(fairHeadLua + fairBeatLua),
	}
	l.notifier = newNotifier(c, linger)
	return l
}

type fairLock struct {
	*redisLock
	take, leave, beat *redis.Script

	mu      sync.Mutex
	waiting map[string]map[string]bool // this process's waiters: key -> tokens
}

// fair has the keys of one lock. The braces keep these keys on one node of a cluster.
type fair struct {
	lock, fence, queue, deadlines string
	channel                       string // a waiter's channel is this prefix and its token
}

func fairNames(key string) fair {
	lock := "redis-fair:" + key
	tag := "{" + lock + "}:"
	return fair{lock, tag + "fence", tag + "queue", tag + "deadlines", tag + "wake:"}
}

func (l *fairLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	began, lease, token := time.Now(), cmp.Or(r.Lease, l.lease), locks.Token(r.Owner)
	n := fairNames(r.Key)
	// release frees the lock, or leaves the queue. If Redis cannot be reached, the entry in the
	// queue expires like the entry of a dead waiter.
	release := func(ctx context.Context) error {
		return run(ctx, l.client, l.leave, []string{n.lock, n.queue, n.deadlines}, token, n.channel)
	}
	if r.Wait > 0 {
		defer l.alive(r.Key, token)()
	}
	for queued := false; ; {
		sequence, asked := l.notifier.sequence(n.channel+token), time.Now()
		// DANGER: the script must end before our clean-up begins, or the lock may be granted
		// after the clean-up. So the end of ctx does not cancel the script.
		trying, done := locks.CleanUp(ctx)
		fence, busy, ahead, err := l.try(trying, r, token, lease)
		done()
		if err != nil || ctx.Err() != nil {
			undo(ctx, release)
			return nil, notAcquired(ctx, r, "redis", err)
		}
		if fence > 0 {
			grant := locks.Grant{Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, NoRenew: r.NoRenew, Fence: fence, Release: release}
			return locks.NewLock(ctx, l.renewed(grant, n.lock, n.fence, token)), nil
		}
		if !queued {
			locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
			queued = true
		}
		if err := l.awaitTurn(ctx, r, n.channel+token, sequence, began, busy, ahead); err != nil {
			undo(ctx, release)
			return nil, err
		}
	}
}

// awaitTurn waits for the message that the lock is free for this waiter. For the first waiter, it
// also returns when the holder's lease may have ended. If this message is lost, beats sends it
// again.
func (l *fairLock) awaitTurn(ctx context.Context, r locks.Request, channel string, sequence uint64, began time.Time, busy time.Duration, ahead int64) error {
	if ahead > 0 || busy < 0 {
		busy = r.Wait
	}
	wake, leave := l.notifier.listen(channel, sequence)
	defer leave()
	err := locks.Await(ctx, r, began, l.notifier.limited(channel, busy), wake)
	// The first message confirms the subscription. The first two waiters then try again,
	// because they may have missed a release. The other waiters keep waiting.
	if err == nil && sequence == 0 && ahead > 1 {
		wake, leave := l.notifier.listen(channel, l.notifier.snapshot(channel).confirmed)
		defer leave()
		err = locks.Await(ctx, r, began, l.notifier.limited(channel, busy), wake)
	}
	return err
}

// try returns the grant's fence, or the rest of the holder's lease and the number of waiters ahead.
func (l *fairLock) try(ctx context.Context, r locks.Request, token string, lease time.Duration) (fence int64, busy time.Duration, ahead int64, err error) {
	n, life := fairNames(r.Key), int64(0)
	if r.Wait > 0 {
		life = fairLife.Milliseconds()
	}
	reply, err := l.take.Run(ctx, l.client, []string{n.lock, n.fence, n.queue, n.deadlines}, token, lease.Milliseconds(), life).Int64Slice()
	if err != nil {
		return 0, 0, 0, err
	}
	if reply[0] == 1 {
		return reply[1], 0, 0, nil
	}
	return 0, time.Duration(reply[1]) * time.Millisecond, reply[2], nil
}

// alive keeps a waiter in the queue until end is called. beats refreshes the waiter.
func (l *fairLock) alive(key, token string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[key] == nil {
		l.waiting[key] = map[string]bool{}
		time.AfterFunc(fairBeat, func() { l.beats(key) })
	}
	l.waiting[key][token] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting[key], token)
	}
}

// beats refreshes the waiters of a key until none is left. It wakes each waiter that is not in the
// queue or could not be refreshed, to try again. If the lock is free, beats wakes the first waiter.
func (l *fairLock) beats(key string) {
	l.mu.Lock()
	tokens := slices.Collect(maps.Keys(l.waiting[key]))
	if len(tokens) == 0 {
		delete(l.waiting, key)
	}
	l.mu.Unlock()
	n := fairNames(key)
	for batch := range slices.Chunk(tokens, fairBatch) {
		ctx, cancel := context.WithTimeout(context.Background(), fairBeat)
		args := []any{n.channel, fairLife.Milliseconds()}
		for _, token := range batch {
			args = append(args, token)
		}
		gone, err := l.beat.Run(ctx, l.client, []string{n.lock, n.queue, n.deadlines}, args...).StringSlice()
		cancel()
		if err != nil {
			gone = batch
		}
		for _, token := range gone {
			l.notifier.notify(n.channel+token, false)
		}
	}
	if len(tokens) > 0 {
		time.AfterFunc(fairBeat, func() { l.beats(key) })
	}
}

// Clear deletes the lock and its queue. Waiters queue again at the next refresh. The fence counter stays: a
// holder from before the reset has a lower fence.
func (l *fairLock) Clear(ctx context.Context, key string) error {
	n := fairNames(key)
	return l.client.Del(ctx, n.lock, n.queue, n.deadlines).Err()
}

func (*fairLock) Card() api.Card {
	return card(api.Card{
		ID: "redis-fair", Source: "3.9.2",
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true, Fair: true,
		Title: api.Text{EN: "One Redis, in order of arrival", ZH: "Redis 公平锁"},
		Summary: api.Text{
			EN: "All waiters of all replicas are in one queue in Redis; a release wakes only the first, and dead waiters expire after 5 s.",
			ZH: "所有副本的等待者在 Redis 里排成一队；释放只唤醒队首，死掉的等待者 5 秒后被跳过。",
		},
		When: api.Text{
			EN: "Choose it instead of `redis` if all replicas must get the lock in order of arrival. It sends more requests for each grant.",
			ZH: "所有副本必须先来先得（公平锁）时，用它代替 `redis`。每次加锁要多发几个请求。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Cutoff, api.LostReply, api.Nesting,
			api.Herd, api.DeadWaiter, api.Operator, api.Starved, api.RenewalReply,
		},
		Breaks: []api.Break{
			{Hazard: api.Failover, Why: api.Text{
				EN: "Replication is asynchronous: the new master may have neither the lock nor the queue.",
				ZH: "主从复制是异步的，新主可能既没有这把锁，也没有这个队列。",
			}},
			{Hazard: api.Pause},
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "The lease and the queue run on Redis's clock: when that jumps, entries expire early.",
				ZH: "租期和队列中的位置都按 Redis 的时钟走，时钟一跳，就提前失效。",
			}},
		},
	})
}
