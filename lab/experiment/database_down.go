package experiment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/player"
)

// outage is how long MySQL stays down: longer than a lease, so that leases expire meanwhile.
const outage = player.Lease + time.Second

// answerBound limits the time of an answer. It is far more than the clients' wait for a lock, because
// a busy machine may stop all processes for seconds.
const answerBound = 30 * time.Second

// databaseDown kills MySQL while one request of each strategy is inside its critical section. No
// strategy can sell from a row without the database. It must answer every request all the same, lose
// no sale, and sell again when the database serves again.
func databaseDown() Experiment {
	return Experiment{
		Hazard: "database-down", Group: serversFail, Applies: always, Default: api.Protects, perform: killDatabase,
		Title: api.Text{EN: "MySQL is killed while clients buy, and stays down for a while", ZH: "运行中杀死 MySQL，停一段时间后再启动"},
		Shows: api.Text{
			EN: "nothing is sold from the row meanwhile, no sale is lost, and the sales go on when it is back",
			ZH: "停机期间数据行里的库存卖不出去，但不丢失更新，恢复后继续销售",
		},
	}
}

func killDatabase(ctx context.Context, r *round) ([]Result, error) {
	// One client alone loses no update with any strategy, even if it is slower than its lease. So each
	// lost update is caused by the fault.
	replicas := func(c api.Card) int {
		if !c.Safe || c.Unchecked {
			return 1
		}
		return len(r.bed.Rig.Addresses().Replicas)
	}
	groups, stop, err := r.startClients(ctx, replicas)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := player.Eventually(ctx, "every client has bought something", allBought(groups, 0)); err != nil {
		return nil, err
	}
	if err := r.killAtCriticalStep(ctx, groups); err != nil {
		return nil, err
	}
	r.awaitRecovery(ctx, groups)
	stop()
	results := make([]Result, len(groups))
	for i, s := range groups {
		results[i] = r.afterOutage(ctx, s)
	}
	return results, ctx.Err()
}

// killAtCriticalStep stops one request of each strategy on the first replica, and kills MySQL. The
// stopped requests go on without MySQL. MySQL starts again when the outage is over and all clients
// have an answer.
func (r *round) killAtCriticalStep(ctx context.Context, groups []*clients) error {
	// Also after an error, because the clients wait for the answers of the stopped requests.
	defer func() { _ = r.bed.Replica(0).ResumeAll(context.WithoutCancel(ctx)) }()
	for _, s := range groups {
		if err := r.bed.StopNext(ctx, 0, s.Subject, s.Card.StepFor(r.Hazard, "read")); err != nil {
			return err
		}
	}
	if err := r.awaitCriticalStep(ctx, groups); err != nil {
		return err
	}
	r.span.From = r.bed.Since()
	start, err := r.injectInto(ctx, fault.Kill, "mysql")
	if err != nil {
		return err
	}
	r.injectedAt = r.bed.Since()
	err = r.bed.Replica(0).ResumeAll(ctx)
	if err == nil {
		err = load.Sleep(ctx, outage)
	}
	// afterOutage judges a strategy without an answer, so the error is ignored.
	_ = player.Within(ctx, answerBound, "all clients have an answer", func() bool {
		return !slices.ContainsFunc(groups, func(s *clients) bool { return !s.answeredAfter(r.injectedAt) })
	})
	r.observe(ctx)
	if started := start(context.WithoutCancel(ctx)); started != nil {
		return fmt.Errorf("start mysql: %w", started)
	}
	r.span.To = r.bed.Since()
	return err
}

// awaitCriticalStep waits until a request of each strategy is stopped. It gives up after maxWait: a
// busy machine can make a strategy's lock unusable before the fault.
func (r *round) awaitCriticalStep(ctx context.Context, groups []*clients) error {
	_ = player.Eventually(ctx, "a request of each strategy is stopped", func() bool {
		stopped, err := r.bed.Stopped(ctx, 0)
		for _, s := range groups {
			s.stopped = err == nil && stopped[s.Key()] != ""
		}
		return !slices.ContainsFunc(groups, func(s *clients) bool { return !s.stopped })
	})
	return ctx.Err()
}

// answeredAfter reports whether a request was sent and answered after this time.
func (s *clients) answeredAfter(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.ops, func(op history.Op) bool { return op.Call >= after })
}

// afterOutage judges as afterRestart does. It also judges the answers without MySQL, and the sales
// in a stock outside MySQL.
func (r *round) afterOutage(ctx context.Context, s *clients) Result {
	result := r.afterRestart(ctx, s)
	var answered, sold int
	var slowest time.Duration
	for _, op := range s.ops {
		if op.Return < r.injectedAt || op.Call >= r.span.To {
			continue
		}
		slowest = max(slowest, op.Served())
		if op.Call >= r.injectedAt && op.Return < r.span.To {
			answered++
			sold += history.Taken([]history.Op{op}, history.OK)
		}
	}
	if result.Verdict == api.Safe && !s.stopped {
		result.Verdict = api.Inconclusive
		result.Why = api.Joined(result.Why, api.Text{EN: "No request was inside its critical section.", ZH: "没有请求处于临界区内。"})
	}
	if result.Verdict == api.Safe && (answered == 0 || slowest > answerBound) {
		result.Verdict, result.Invariant = api.Stalled, Progress
		result.Why = api.Joined(result.Why, api.Textf("A request had no answer within %v.", "有请求在 %v 内没有应答。", answerBound))
	}
	result.Why = api.Joined(result.Why, api.Textf("MySQL was down for %v. Meanwhile, %d requests were answered, and %d pieces were sold; the slowest answer took %v.",
		"MySQL 停机 %v。其间应答了 %d 个请求，卖出 %d 件；最慢的应答用了 %v。",
		(r.span.To-r.span.From).Round(time.Millisecond), answered, sold, slowest.Round(time.Millisecond)))
	if s.Card.Stock != "" && result.Verdict == api.Safe {
		r.reconcileRow(ctx, s, &result)
	}
	result.judgeUnless(r.missed)
	return result
}

// reconcileRow waits until MySQL's row has all sales, unless the card says that the row may lack
// sales. It then judges the row.
func (r *round) reconcileRow(ctx context.Context, s *clients, result *Result) {
	row, mayLack := plenty, s.Card.BrokenBy(api.WriteBehind)
	err := player.Within(ctx, player.GrantBound, "the row has all sales", func() bool {
		left, err := r.bed.Replica(0).Count(ctx, "none", s.Product) // the strategy none reads MySQL's row
		if err == nil {
			row = left
		}
		return err == nil && (mayLack || plenty-row == result.Taken)
	})
	result.Why = api.Joined(result.Why, api.Textf(
		"%d were sold in %s, and %d were taken from MySQL's row.",
		"在 %[2]s 中卖出 %[1]d 件，MySQL 的数据行减少 %[3]d。", result.Sold, s.Card.Stock, plenty-row))
	if err != nil {
		result.Verdict, result.Invariant = api.Broken, Reconciliation
	}
}
