package experiment

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
)

// restart restarts every backend while clients buy: first MySQL, then the Redis servers, the
// ZooKeepers and etcd. The answers of all clients must fit into one order of all sales,
// whatever became of the requests without an answer.
func restart() Experiment {
	return Experiment{
		Hazard: "restart", Applies: always, run: restartUnderLoad,
		Title: "MySQL, Redis, ZooKeeper and etcd are restarted while clients buy", Shows: "errors, then recovery",
	}
}

// plenty is a stock that no run sells out.
const plenty = 100_000

// clients buy the product of one strategy repeatedly, one client on each replica.
type clients struct {
	Subject
	mu  sync.Mutex
	ops []history.Op
}

func (s *clients) boughtAfter(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ops {
		if s.ops[i].Outcome == history.OK && s.ops[i].Call >= after {
			return true
		}
	}
	return false
}

func restartUnderLoad(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) ([]Result, error) {
	groups := make([]*clients, len(subjects))
	for i, s := range subjects {
		product, err := bed.addProduct(ctx, 0, plenty)
		if err != nil {
			return nil, err
		}
		s.product = product
		groups[i] = &clients{Subject: s}
	}
	open, closing := context.WithCancel(ctx)
	defer closing()
	var all sync.WaitGroup
	for _, s := range groups {
		for n := range bed.Rig.Addresses().Replicas {
			all.Go(func() { bed.buyUntilClosed(open, n, s) })
		}
	}
	allBought := func(after time.Duration) func() bool {
		return func() bool {
			for _, s := range groups {
				if !s.boughtAfter(after) {
					return false
				}
			}
			return true
		}
	}
	span := history.Span{What: "restarted", Who: "mysql", From: bed.since()}
	err := eventually(ctx, "every client has bought something", allBought(0))
	if err == nil {
		err = bed.restartAll(ctx, "mysql", "redis-1", "redis-2", "redis-3", "redis-4", "redis-5", "zookeeper-1", "zookeeper-2", "zookeeper-3", "etcd-1", "etcd-2", "etcd-3")
	}
	span.To = bed.since()
	// This only waits: a strategy that does not recover is judged below.
	recovering, cancel := context.WithTimeout(ctx, grantBound)
	_ = eventually(recovering, "every client buys again", allBought(span.To))
	cancel()
	closing()
	all.Wait()
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(groups))
	for i, s := range groups {
		results[i] = s.result(ctx, bed, seed, plenty, span)
	}
	return results, ctx.Err()
}

// buyUntilClosed buys until open ends. It lets the last request finish: its outcome must be
// known.
func (bed *Testbed) buyUntilClosed(open context.Context, n int, s *clients) {
	for open.Err() == nil {
		op := bed.buy(context.WithoutCancel(open), n, s.Subject, url.Values{"wait": {"2s"}})
		op.Client = n + 1
		s.mu.Lock()
		s.ops = append(s.ops, op)
		s.mu.Unlock()
		select { // a pause: all strategies share a few cores
		case <-open.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// restartAll restarts the servers one after the other. It waits until each serves again.
func (bed *Testbed) restartAll(ctx context.Context, servers ...string) error {
	for _, name := range servers {
		server, err := bed.Rig.Server(name)
		if err != nil {
			return err
		}
		heal, err := fault.Restart{Server: server}.Inject(ctx)
		if err != nil {
			return err
		}
		if err := heal(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (s *clients) result(ctx context.Context, bed *Testbed, seed int64, initial int, span history.Span) Result {
	result := Result{
		Hazard: "restart", Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim("restart"), Verdict: Safe,
		Recording: history.Recording{
			Start: bed.rec.start, Stock: initial, Ops: s.ops, Events: bed.rec.eventsOf(api.Key(s.product)), Spans: []history.Span{span},
		},
	}
	left, err := bed.replica(0).Count(ctx, s.Card.ID, s.product)
	if err != nil {
		result.Verdict, result.Why = Unknown, err.Error()
		return result
	}
	stock := check.Stock(s.ops, initial, left)
	result.Sold, result.Taken = stock.Sold, initial-left
	failed := history.Count(s.ops, func(op *history.Op) bool { return op.Failed() })
	counts := fmt.Sprintf("%d requests, %d sold, %d failed, %d of them perhaps sold; %d taken from stock", len(s.ops), stock.Sold, failed, stock.Unknown, result.Taken)
	if stock.Verdict == check.Broken {
		result.Verdict, result.Invariant, result.Why = Broken, Conservation, counts
		if !s.Card.Safe {
			result.Why += " (the strategy loses updates without a restart, too)"
		}
		return result
	}
	linear := check.Linear(s.ops, initial)
	switch {
	case linear.Verdict == check.Broken && s.Card.Safe:
		result.Verdict, result.Invariant, result.Why = Broken, Linearizability, linear.Why+"; "+counts
	case !s.boughtAfter(span.To):
		result.Verdict, result.Invariant, result.Why = Stalled, Progress, fmt.Sprintf("nothing was sold within %v after the restart; %s", grantBound, counts)
	default:
		result.Why = counts + "; " + linear.Why
	}
	return result
}
