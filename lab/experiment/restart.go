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
		Number: 22, Hazard: "restart", Applies: always, run: openAllHours,
		Title: "MySQL, Redis, ZooKeeper and etcd are restarted in the middle of business", Shows: "errors, then recovery",
	}
}

// plenty is a stock that lasts for as long as anybody sells.
const plenty = 100_000

// customers buy a strategy's product again and again, one on each replica.
type customers struct {
	Subject
	mu  sync.Mutex
	ops []history.Op
}

func (s *customers) bought(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ops {
		if s.ops[i].Outcome == history.OK && s.ops[i].Call >= after {
			return true
		}
	}
	return false
}

func openAllHours(ctx context.Context, c *Class, subjects []Subject, seed int64) ([]Cell, error) {
	const plenty = 100_000
	crowds := make([]*customers, len(subjects))
	for i, s := range subjects {
		product, err := c.stocked(ctx, 0, plenty)
		if err != nil {
			return nil, err
		}
		s.product = product
		crowds[i] = &customers{Subject: s}
	}
	open, closing := context.WithCancel(ctx)
	defer closing()
	var all sync.WaitGroup
	for _, s := range crowds {
		for n := range c.Rig.Addresses().Replicas {
			all.Go(func() { c.shop(open, n, s) })
		}
	}
	everybody := func(after time.Duration) func() bool {
		return func() bool {
			for _, s := range crowds {
				if !s.bought(after) {
					return false
				}
			}
			return true
		}
	}
	span := history.Span{What: "restarted", Who: "mysql", From: c.since()}
	err := eventually(ctx, "everybody has bought something", everybody(0))
	if err == nil {
		err = c.restartAll(ctx, "mysql", "redis-1", "redis-2", "redis-3", "redis-4", "redis-5", "zookeeper-1", "zookeeper-2", "zookeeper-3", "etcd-1", "etcd-2", "etcd-3")
	}
	span.To = c.since()
	// Who can't recover is seen below: this only waits for it.
	recovering, cancel := context.WithTimeout(ctx, bound)
	_ = eventually(recovering, "everybody buys again", everybody(span.To))
	cancel()
	closing()
	all.Wait()
	if err != nil {
		return nil, err
	}
	cells := make([]Cell, len(crowds))
	for i, s := range crowds {
		cells[i] = s.cell(ctx, c, seed, plenty, span)
	}
	return cells, ctx.Err() //nolint:wrapcheck // says all
}

// shop buys until the shop closes. A request that is under way then is finished, for
// whether it sold must be known.
func (c *Class) shop(open context.Context, n int, s *customers) {
	for open.Err() == nil {
		op := c.buy(context.WithoutCancel(open), n, s.Subject, url.Values{"wait": {"2s"}})
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
func (c *Class) restartAll(ctx context.Context, servers ...string) error {
	for _, name := range servers {
		server, err := c.Rig.Server(name)
		if err != nil {
			return err //nolint:wrapcheck // says all
		}
		heal, err := fault.Restart{Server: server}.Inject(ctx)
		if err != nil {
			return err //nolint:wrapcheck // says all
		}
		if err := heal(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (s *customers) cell(ctx context.Context, c *Class, seed int64, initial int, span history.Span) Cell {
	cell := Cell{
		Number: 22, Hazard: "restart", Strategy: s.Card.ID, Seed: seed, Claim: s.Card.Claim("restart"), Verdict: Safe,
		Recording: history.Recording{
			Start: c.rec.start, Stock: initial, Ops: s.ops, Events: c.rec.of(replica.Key(s.product)), Spans: []history.Span{span},
		},
	}
	left, err := c.replica(0).Count(ctx, s.Card.ID, s.product)
	if err != nil {
		cell.Verdict, cell.Why = Unknown, err.Error()
		return cell
	}
	stock := check.Stock(s.ops, initial, left)
	cell.Sold, cell.Taken = stock.Sold, initial-left
	failed := history.Count(s.ops, func(op *history.Op) bool { return op.Failed() })
	told := fmt.Sprintf("%d requests, %d sold, %d failed, %d of them perhaps sold; %d left the row", len(s.ops), stock.Sold, failed, stock.Unknown, cell.Taken)
	if stock.Verdict == check.Violated {
		cell.Verdict, cell.Invariant, cell.Why = Violated, "I1", told
		if !s.Card.Safe {
			cell.Why += " (as without a restart)"
		}
		return cell // an order of such sales need not be searched for
	}
	linear := check.Linear(s.ops, initial)
	switch {
	case linear.Verdict == check.Violated && s.Card.Safe:
		cell.Verdict, cell.Invariant, cell.Why = Violated, "linearizability", linear.Why+"; "+told
	case !s.bought(span.To):
		cell.Verdict, cell.Invariant, cell.Why = Stalled, "I4", fmt.Sprintf("nothing was sold within %v after it; %s", bound, told)
	default:
		cell.Why = told + "; " + linear.Why
	}
	return cell
}
