package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
)

// restart restarts every backend while clients buy. All answers must fit into one order of all
// sales, in which a request without an answer may have sold or not.
func restart() Experiment {
	return Experiment{
		Hazard: "restart", Group: serversFail, Applies: always, perform: restartUnderLoad,
		Title: api.Text{
			EN: "MySQL, Redis, ZooKeeper and etcd are restarted while clients buy",
			ZH: "运行中重启 MySQL、Redis、ZooKeeper 和 etcd",
		},
		Shows: api.Text{EN: "errors, then recovery", ZH: "先出错，后恢复"},
	}
}

// backends returns the names of all servers that keep locks or stock, in the order of their start.
func backends(bed *player.Testbed) (names []string) {
	for _, s := range bed.Rig.Servers() {
		if kind := rig.Kind(s.Name()); slices.Contains(api.LockServices(), kind) && !strings.HasSuffix(s.Name(), "-replica") || kind == "pgbouncer" {
			names = append(names, s.Name())
		}
	}
	return names
}

// plenty is a stock that no run sells out.
const plenty = 100_000

// clients are one strategy's clients, one on each replica. They buy its product repeatedly.
type clients struct {
	player.Subject
	mu  sync.Mutex
	ops []history.Op
	// stopped means that a request was stopped at its critical step when the fault came.
	stopped bool
}

func (s *clients) boughtAfter(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.ops, func(op history.Op) bool { return op.Outcome == history.OK && op.Call >= after })
}

func restartUnderLoad(ctx context.Context, r *round) ([]Result, error) {
	all := func(api.Card) int { return len(r.bed.Rig.Addresses().Replicas) }
	groups, stop, err := r.startClients(ctx, all)
	if err != nil {
		return nil, err
	}
	defer stop()
	from := r.bed.Since()
	err = player.Eventually(ctx, "every client has bought something", allBought(groups, 0))
	if err == nil {
		_, err = r.injectInto(ctx, fault.Restart, backends(r.bed)...)
		err = errors.Join(err, r.bed.AwaitConnected(ctx))
	}
	r.span = history.Span{What: "restarted", Who: "mysql", From: from, To: r.bed.Since()}
	r.awaitRecovery(ctx, groups)
	stop()
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(groups))
	for i, s := range groups {
		results[i] = r.afterRestart(ctx, s)
		var missed error
		for _, f := range r.faults {
			if rig.Kind(f.Target) == s.Card.LockService() {
				missed = errors.Join(missed, f.Landed(ctx))
			}
		}
		results[i].judgeUnless(missed)
	}
	return results, ctx.Err()
}

// startClients lets each strategy's clients buy its own product. The clients use the first replicas
// of the strategy. stop returns after the last answer, and may be called again.
func (r *round) startClients(ctx context.Context, replicas func(api.Card) int) (groups []*clients, stop func(), err error) {
	groups = make([]*clients, len(r.subjects))
	for i, s := range r.subjects {
		if s.Product, err = r.bed.AddProduct(ctx, 0, plenty); err != nil {
			return nil, nil, err
		}
		groups[i] = &clients{Subject: s}
	}
	open, closing := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, s := range groups {
		for n := range replicas(s.Card) {
			all.Go(func() { s.buyUntilClosed(open, r.bed, n) })
		}
	}
	return groups, func() { closing(); all.Wait() }, nil
}

func allBought(groups []*clients, after time.Duration) func() bool {
	return func() bool {
		return !slices.ContainsFunc(groups, func(s *clients) bool { return !s.boughtAfter(after) })
	}
}

// awaitRecovery waits until every strategy sells again after the fault, within a time limit. It
// returns no error, because afterRestart judges a strategy that does not sell again.
func (r *round) awaitRecovery(ctx context.Context, groups []*clients) {
	_ = player.Within(ctx, player.GrantBound, "every client buys again", allBought(groups, r.span.To))
}

// buyUntilClosed buys until open ends. The last request runs on, so that its outcome is known.
func (s *clients) buyUntilClosed(open context.Context, bed *player.Testbed, n int) {
	for open.Err() == nil {
		op := bed.Buy(context.WithoutCancel(open), n, s.Subject, player.Wait(2*time.Second))
		op.Client = n + 1
		s.mu.Lock()
		s.ops = append(s.ops, op)
		s.mu.Unlock()
		_ = load.Sleep(open, 100*time.Millisecond) // all strategies share a few cores
	}
}

func (r *round) afterRestart(ctx context.Context, s *clients) Result {
	result := r.safe(s.Subject, r.recording(s.Subject, plenty, s.ops))
	stock, err := r.count(ctx, 0, s.Subject, &result)
	if err != nil {
		result.Verdict, result.Why = api.Inconclusive, failure(err)
		return result
	}
	failed := history.Count(s.ops, func(op *history.Op) bool { return op.Failed() })
	counts := api.Joined(result.Counts(), api.Textf("Of %d requests, %d failed, and %d of these may have sold.",
		"%d 个请求中有 %d 个失败，其中 %d 个可能已售出。", len(s.ops), failed, stock.Unknown))
	if stock.Verdict == api.Broken {
		result.Verdict, result.Invariant, result.Why = api.Broken, Conservation, counts
		if !s.Card.Safe {
			result.Why = api.Joined(counts, api.Text{
				EN: "This strategy loses updates without a restart, too.",
				ZH: "这个策略不重启也会丢失更新。",
			})
		}
		return result
	}
	linear := check.Linear(s.ops, plenty)
	switch {
	case linear.Verdict == api.Broken && s.Card.Safe:
		result.Verdict, result.Invariant, result.Why = api.Broken, Linearizability, api.Joined(counts, linear.Why)
	case !s.boughtAfter(r.span.To):
		result.Verdict, result.Invariant = api.Stalled, Progress
		result.Why = api.Joined(counts, api.Textf("Nothing was sold within %v after the restart.", "重启之后 %v 内没有卖出。", player.GrantBound))
	default:
		result.Why = api.Joined(counts, linear.Why)
	}
	return result
}
