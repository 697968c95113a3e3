package redislock

import (
	"context"
	_ "embed"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

//go:embed redis_fair_head.lua
var fairHeadLua string

//go:embed redis_fair_take.lua
var fairTakeLua string

//go:embed redis_fair_leave.lua
var fairLeaveLua string

//go:embed redis_fair_beat.lua
var fairBeatLua string

const (
	// fairLife is how long a waiter stays in the queue without a sign of life, on Redis's
	// clock. Redisson waits 5 s for each dead waiter; here those that died together expire
	// together.
	fairLife = 5 * time.Second
	// fairBeat is the interval at which a process refreshes its waiters. A dead waiter delays
	// the next by fairLife + fairBeat at most, under 7 s.
	fairBeat = fairLife / 3
	// fairBatch limits the number of waiters in one script.
	fairBatch = 500
)

// Fair is Redisson's fair lock (tutorial 3.9.2): the lock of Redis, but all waiters of all
// replicas are in one queue inside Redis, and a release wakes only the first.
//
// It has no locks.Queue: with only one waiter of each process in the queue, waiters of other
// processes would overtake the rest.
func Fair(c redis.UniversalClient, lease time.Duration) locks.Locker {
	return locks.Reentrant(newFair(c, lease))
}

func newFair(c redis.UniversalClient, lease time.Duration) *fairLock {
	return &fairLock{
		client: c, lease: lease, notifier: newNotifier(c, linger), waiting: map[string]map[string]bool{},
		take: redis.NewScript(fairHeadLua + fairTakeLua), leave: redis.NewScript(fairHeadLua + fairLeaveLua),
		beat: redis.NewScript(fairHeadLua + fairBeatLua), renew: redis.NewScript(renewLua), raise: redis.NewScript(raiseLua),
	}
}

type fairLock struct {
	client                          redis.UniversalClient
	lease                           time.Duration
	notifier                        *notifier
	take, leave, beat, renew, raise *redis.Script

	mu      sync.Mutex
	waiting map[string]map[string]bool // this process's waiters: key -> tokens
}

// fair has the keys of one lock. The braces keep them on one node of a cluster.
type fair struct {
	lock, fence, queue, deadlines string
	channel                       string // followed by a token: wakes that waiter
}

func fairNames(key string) fair {
	lock := "redis-fair:" + key
	tag := "{" + lock + "}:"
	return fair{lock, tag + "fence", tag + "queue", tag + "deadlines", tag + "wake:"}
}

func (l *fairLock) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	lease := r.Lease
	if lease == 0 {
		lease = l.lease
	}
	began, token := time.Now(), locks.Token(r.Owner)
	channel := fairNames(r.Key).channel + token
	if r.Wait > 0 {
		defer l.alive(r.Key, token)()
	}
	for queued := false; ; {
		sequence, asked := l.notifier.sequence(channel), time.Now()
		// DANGER: the script must end before our clean-up begins, or the lock may be granted
		// after it. So a caller that goes away does not cancel the script.
		trying, done := locks.CleanUp(ctx)
		fence, busy, ahead, err := l.try(trying, r, token, lease)
		done()
		if err != nil || ctx.Err() != nil {
			return nil, l.fail(ctx, r, token, err)
		}
		if fence > 0 {
			return locks.NewLock(ctx, l.grant(r, token, lease, asked, fence)), nil
		}
		if !queued {
			locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
			queued = true
		}
		if err := l.listen(ctx, r, channel, sequence, began, busy, ahead); err != nil {
			l.takeBack(ctx, r, token)
			return nil, err
		}
	}
}

// listen waits for our turn. Only the first in the queue tries again when the holder's lease
// may have expired. After a lost message, the next beat wakes the waiter.
func (l *fairLock) listen(ctx context.Context, r locks.Request, channel string, sequence uint64, began time.Time, busy time.Duration, ahead int64) error {
	if ahead > 0 || busy < 0 {
		busy = r.Wait
	}
	wake, leave := l.notifier.listen(channel, sequence)
	defer leave()
	err := locks.Await(ctx, r, began, busy, wake)
	// The first message confirms the subscription. The first two in the queue look again, for
	// they may have missed a release. For the others it is too early.
	if err == nil && sequence == 0 && ahead > 1 {
		wake, leave := l.notifier.listen(channel, l.notifier.confirmation(channel))
		defer leave()
		err = locks.Await(ctx, r, began, busy, wake)
	}
	return err
}

// try returns the fence of the grant, or 0, the rest of the holder's lease, and the number of
// waiters before us.
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

func (l *fairLock) fail(ctx context.Context, r locks.Request, token string, err error) error {
	l.takeBack(ctx, r, token)
	if ctx.Err() != nil {
		return locks.NotAcquired(ctx, r.Key, r.Wait)
	}
	return &stock.Unavailable{Backend: "redis", Err: err}
}

// takeBack leaves the queue, and releases what the try may have acquired. If Redis cannot be
// reached, the entry expires like that of a dead waiter.
func (l *fairLock) takeBack(ctx context.Context, r locks.Request, token string) {
	clean, cancel := locks.CleanUp(ctx)
	defer cancel()
	_ = locks.GiveBack(clean, time.Time{}, func(ctx context.Context) error { return l.unlock(ctx, r.Key, token) })
}

func (l *fairLock) grant(r locks.Request, token string, lease time.Duration, asked time.Time, fence int64) locks.Grant {
	n := fairNames(r.Key)
	release := func(ctx context.Context) error { return l.unlock(ctx, r.Key, token) }
	return locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: asked, Lease: lease, Fence: fence,
		Renew: func(ctx context.Context) error {
			return held(l.renew.Run(ctx, l.client, []string{n.lock}, token, lease.Milliseconds()).Int64())
		},
		AdvanceFence: func(ctx context.Context, floor int64) (int64, error) {
			fence, err := l.raise.Run(ctx, l.client, []string{n.lock, n.fence}, token, floor).Int64()
			return fence, held(fence, err)
		},
		Release: release, Again: release,
	}
}

// unlock releases the lock, or leaves the queue. It wakes the next if the lock is free.
func (l *fairLock) unlock(ctx context.Context, key, token string) error {
	n := fairNames(key)
	return held(l.leave.Run(ctx, l.client, []string{n.lock, n.queue, n.deadlines}, token, n.channel).Int64())
}

// alive keeps the waiter in the queue until end is called. One command in each beat refreshes
// all waiters of this process.
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

// beats refreshes the waiters of a key until there are none. It wakes those that are no longer
// in the queue, or could not be refreshed: they try again.
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
			l.notifier.notify(n.channel + token)
		}
	}
	if len(tokens) > 0 {
		time.AfterFunc(fairBeat, func() { l.beats(key) })
	}
}

// Clear removes lock, counter and queue. The waiters notice it at the next beat, and enter the
// queue again.
func (l *fairLock) Clear(ctx context.Context, key string) error {
	n := fairNames(key)
	return l.client.Del(ctx, n.lock, n.fence, n.queue, n.deadlines).Err()
}

func (*fairLock) Card() api.Card {
	return api.Card{
		ID: "redis-fair", Family: "redis", Source: "3.9.2", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "redis"}, Locker: true,
		Lease: true, LeasePerRequest: true, Renews: true, Reentrant: true, Fenced: true, Fair: true,
		Title: api.Text{EN: "One Redis, in order of arrival", ZH: "Redis 公平锁"},
		Summary: api.Text{
			EN: "All waiters of all replicas are in one queue in Redis; a release wakes only the first, and dead waiters expire after 5 s.",
			ZH: "所有副本的等待者在 Redis 里排成一队；释放只唤醒队首，死掉的等待者 5 秒后被跳过。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Cutoff, api.LostReply, api.Nesting,
			api.Herd, api.DeadWaiter,
		},
		Breaks: []api.Break{
			{Hazard: api.Failover, Why: api.Text{
				EN: "Replication is asynchronous: the new master may have neither the lock nor the queue.",
				ZH: "主从复制是异步的，新主可能既没有这把锁，也没有这个队列。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that is paused beyond its lease still writes when it goes on, unless the write is fenced.",
				ZH: "持有者停顿超过租期，醒来后照样写入，除非写入带栅栏号。",
			}},
			{Hazard: api.ClockJump, Why: api.Text{
				EN: "The lease and the queue run on Redis's clock: when that jumps, entries expire early.",
				ZH: "租期和队列中的位置都按 Redis 的时钟走，时钟一跳，就提前失效。",
			}},
		},
	}
}
