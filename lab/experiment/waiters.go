package experiment

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/load"
	"oversell/lab/player"
)

const (
	// waiters is the number of requests that wait for a lock. In cas-storm, as many buy at once.
	waiters = 60
	// quietPeriod is how long the waiters are observed while the holder keeps the lock.
	quietPeriod = time.Second
	// pollSamples and quietSamples limit how many samples of 100 ms the waiters get to become quiet.
	// Waiters that poll never become quiet, so the experiment polling uses pollSamples.
	pollSamples, quietSamples = 4, 100
	// wastefulFrom is the limit of normal requests: three for two waiters, such as a renewal, a heartbeat
	// and the release itself.
	wastefulFrom = waiters * 3 / 2
)

// polling counts the requests that waiters send to the backends while the holder keeps the lock.
func polling() Experiment {
	// Waiters that poll do so in every second. On a busy machine, others may still be joining the queue
	// in the first ones, and the sleep takes longer than quietPeriod.
	perSecond := func(ctx context.Context, q *queue) (least int64, err error) {
		least = math.MaxInt64
		for n := 0; n < 3 && least > wastefulFrom && err == nil; n++ {
			var sent int64
			var took time.Duration
			sent, took, err = q.count(ctx, func() error { return load.Sleep(ctx, quietPeriod) })
			least = min(least, int64(float64(sent)/max(took, quietPeriod).Seconds()))
		}
		return least, err
	}
	return Experiment{
		Hazard: "polling", Group: costly, Unseen: true, Applies: func(c api.Card) bool { return lockers(c) && counted(c) },
		Title:   api.Text{EN: "60 wait while nothing happens", ZH: "60 个等待者，锁没有变化"},
		Shows:   api.Text{EN: "requests to the backend that are not needed", ZH: "等待者向后端发送多少请求"},
		perform: measureEach(api.Text{EN: "in a second without any change", ZH: "在没有变化的一秒内"}, pollSamples, perSecond),
	}
}

// counted reports whether countRequests counts the requests of the lock.
func counted(c api.Card) bool { return !c.Uses("postgres") }

func herd() Experiment {
	release := func(ctx context.Context, q *queue) (int64, error) {
		sent, took, err := q.count(ctx, func() error { return q.release(ctx) })
		if err != nil {
			return 0, err
		}
		// On a busy machine a release takes seconds, in which waiters also renew their leases. These
		// renewals are measured separately and subtracted.
		renewals, _, err := q.count(ctx, func() error { return load.Sleep(ctx, took) })
		return max(0, sent-renewals), err
	}
	onTrial := claimedOrOnTrial("herd", "redis", "zookeeper", "etcd", "mysql")
	return Experiment{
		Hazard: "herd", Group: costly, Unseen: true,
		Title: api.Text{EN: "one release before 60 waiters", ZH: "60 个等待者时释放一次锁（惊群）"},
		Shows: api.Text{EN: "every waiter wakes up, and all but one in vain (thundering herd)", ZH: "所有等待者都被唤醒，只有一个能拿到锁"},
		// Without a notice of its end, a lease ends during the measurement.
		Applies: func(c api.Card) bool { return onTrial(c) && counted(c) && !c.Unchecked },
		perform: measureEach(api.Text{EN: "because of one release", ZH: "因一次释放"}, quietSamples, release),
	}
}

// queue is a holder that is stopped on the first replica, and the waiters for its lock.
type queue struct {
	player.Subject
	bed     *player.Testbed
	ownCost int64 // of a reading of the counters of requests
	// quiet means that the waiters send no requests while nothing happens: they do not poll.
	quiet bool
}

// measureEach measures one strategy after the other: a backend counts their requests together.
func measureEach(when api.Text, samples int, measure func(context.Context, *queue) (int64, error)) func(context.Context, *round) ([]Result, error) {
	return func(ctx context.Context, r *round) ([]Result, error) {
		return r.each(ctx, 2*waiters, func(s player.Subject) (Result, error) {
			q := &queue{Subject: s, bed: r.bed}
			sent, err := q.withWaiters(ctx, samples, measure)
			if err == nil && samples == quietSamples && !q.quiet && r.Claim(s.Card, false) == api.Silent {
				return Result{}, errNotMeasurable // polling has the verdict
			}
			result := r.safe(s, r.recording(s, 0, nil))
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // such as a lock that is not granted
				result.Verdict, result.Why = api.Inconclusive, failure(err)
				return result, nil
			}
			result.Why = api.Textf(
				"%[1]d waiters sent %[2]d requests to the backends %[3]s.",
				"%[1]d 个等待者%[4]s向后端发送了 %[2]d 个请求。", waiters, sent, when.EN, when.ZH)
			if sent > wastefulFrom {
				result.Verdict = api.Wasteful
			}
			return result, err
		})
	}
}

// errNotMeasurable means that a subject gets no result: beside waiters that poll, the requests because
// of a release are lost in the noise.
var errNotMeasurable = errors.New("the waiters poll")

// withWaiters calls measure while one request holds the lock and the waiters wait for it.
func (q *queue) withWaiters(ctx context.Context, samples int, measure func(context.Context, *queue) (int64, error)) (int64, error) {
	bed := q.bed
	cost, err := bed.OwnCost(ctx)
	if err != nil {
		return 0, err
	}
	q.ownCost = cost
	// Every request is cancelled at the end, because its sale does not matter.
	buying, hangUp := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = bed.Heal(context.WithoutCancel(ctx)) }()
	defer hangUp()
	// A request stops only at failpoints that were armed before the request came. Each next holder stops
	// as well, so that the others still wait when a lease has ended.
	for n := range 3 {
		if err := bed.StopFirst(ctx, waiters, n, q.Subject, "read"); err != nil {
			return 0, err
		}
	}
	all.Go(func() { _ = bed.Buy(buying, 0, q.Subject, nil) })
	if err := player.Eventually(ctx, "the holder has the lock", func() bool { return q.stoppedOn(ctx, 0) }); err != nil {
		return 0, err
	}
	for i := range waiters {
		all.Go(func() { _ = bed.Buy(buying, 1+i%2, q.Subject, player.Wait(time.Minute)) })
	}
	if err := player.Eventually(ctx, "all waiters wait", q.waiting); err != nil {
		return 0, err
	}
	if q.quiet, err = q.awaitQuiet(ctx, samples); err != nil {
		return 0, err
	}
	return measure(ctx, q)
}

// count calls do. It returns how many requests the backends got during the call, and its length.
func (q *queue) count(ctx context.Context, do func() error) (sent int64, took time.Duration, err error) {
	before, err := q.bed.CountRequests(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	after, err := q.bed.CountRequests(ctx)
	return after - before - q.ownCost, time.Since(began), err
}

// release resumes the holder. It waits until a waiter holds the lock and the waiters are quiet.
func (q *queue) release(ctx context.Context) error {
	if err := q.bed.Replica(0).ResumeAll(ctx); err != nil {
		return err
	}
	err := player.Eventually(ctx, "the next holder", func() bool { return q.stoppedOn(ctx, 1) || q.stoppedOn(ctx, 2) })
	_, noisy := q.awaitQuiet(ctx, quietSamples)
	return errors.Join(err, noisy)
}

// waiting reports whether every waiter has asked for the lock, or is in the queue of a fair lock.
func (q *queue) waiting() bool {
	owners := map[string]bool{}
	for _, e := range q.bed.Events(q.Subject) {
		if e.Replica != player.ReplicaName(0) && e.Step == queued(q.Card) {
			owners[e.Owner] = true
		}
	}
	return len(owners) == waiters
}

func (q *queue) stoppedOn(ctx context.Context, n int) bool {
	owners, err := q.bed.Stopped(ctx, n)
	return err == nil && owners[q.Key()] != ""
}

// awaitQuiet waits until the waiters send two requests or fewer in 100 ms. It waits for this number
// of samples at most.
func (q *queue) awaitQuiet(ctx context.Context, samples int) (quiet bool, err error) {
	before, err := q.bed.CountRequests(ctx)
	for range samples {
		if err != nil {
			return false, err
		}
		if err := load.Sleep(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
		var after int64
		if after, err = q.bed.CountRequests(ctx); err == nil && after-before <= 2+q.ownCost {
			return true, nil
		}
		before = after
	}
	return false, err
}

// queued returns the step that a waiting request reports: queued at a fair lock, otherwise asked.
func queued(c api.Card) api.Step {
	if c.Fair {
		return api.Queued
	}
	return api.Asked
}
