package experiment

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/replica"
)

// restart begins every backend anew while the shop is open: first MySQL, then the
// Redis, then the ZooKeepers, then etcd. What each customer was told is left in the stock must fit
// into one order of all sales, whatever became of the requests that had no answer.
func restart() Experiment {
	return Experiment{
		Hazard: "restart", Applies: always, run: restartUnderLoad,
		Title: "MySQL, Redis, ZooKeeper and etcd are restarted in the middle of business", Shows: "errors, then recovery",
	}
}

// plenty is a stock that lasts for as long as anybody sells.
const plenty = 100_000

// customers buy a strategy's product again and again, one on each replica.
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
	const plenty = 100_000
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
	everybody := func(after time.Duration) func() bool {
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
	err := eventually(ctx, "everybody has bought something", everybody(0))
	if err == nil {
		err = bed.restartAll(ctx, "mysql", "redis-1", "redis-2", "redis-3", "redis-4", "redis-5", "zookeeper-1", "zookeeper-2", "zookeeper-3", "etcd-1", "etcd-2", "etcd-3")
	}
	span.To = bed.since()
	// Who can't recover is seen below: this only waits for it.
	recovering, cancel := context.WithTimeout(ctx, grantBound)
	_ = eventually(recovering, "everybody buys again", everybody(span.To))
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

// shop buys until the shop closes. A request that is under way then is finished, for
// whether it sold must be known.
func (bed *Testbed) buyUntilClosed(open context.Context, n int, s *clients) {
	for open.Err() == nil {
		op := bed.buy(context.WithoutCancel(open), n, s.Subject, url.Values{"wait": {"2s"}})
		op.Client = n + 1
		s.mu.Lock()
		s.ops = append(s.ops, op)
		s.mu.Unlock()
		select { // there are thirty strategies on these few cores
		case <-open.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// restartAll stops the servers one after the other, each until it serves again.
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
			Start: bed.rec.start, Stock: initial, Ops: s.ops, Events: bed.rec.eventsOf(replica.Key(s.product)), Spans: []history.Span{span},
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
	told := fmt.Sprintf("%d requests, %d sold, %d failed, %d of them perhaps sold; %d left the row", len(s.ops), stock.Sold, failed, stock.Unknown, result.Taken)
	if stock.Verdict == check.Broken {
		result.Verdict, result.Invariant, result.Why = Broken, Conservation, told
		if !s.Card.Safe {
			result.Why += " (as without a restart)"
		}
		return result // an order of such sales need not be searched for
	}
	linear := check.Linear(s.ops, initial)
	switch {
	case linear.Verdict == check.Broken && s.Card.Safe:
		result.Verdict, result.Invariant, result.Why = Broken, Linearizability, linear.Why+"; "+told
	case !s.boughtAfter(span.To):
		result.Verdict, result.Invariant, result.Why = Stalled, Progress, fmt.Sprintf("nothing was sold within %v after it; %s", grantBound, told)
	default:
		result.Why = told + "; " + linear.Why
	}
	return result
}
