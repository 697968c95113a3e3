package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/rig/rigtest"
)

// TestReplicaDiesInMidRun kills a replica during runs and starts it again. The stock must fall by
// the successful sales, plus at most the sales without an answer. This must also hold for
// strategies that answer many requests at once (combining) or write the row later (redis-stock). It
// must also hold if waiters of one replica pass the lock to each other (cohorts). Pieces that the
// killed replica had reserved must return to the stock.
func TestReplicaDiesInMidRun(t *testing.T) {
	strategies := []string{"for-update", "redis", "cohort-zk", "reservation", "combining", "redis-stock"}
	if rigtest.IsNightly() {
		strategies = append(strategies, "get-lock", "cohort-redis", "cohort-redlock", "etcd", "atomic", "skip-locked", "buckets")
	}
	for _, s := range sellDuring(t, strategies, func([]*sales) {
		replica := server(t, "replica-2")
		replica.Kill()
		if err := replica.Start(t.Context()); err != nil {
			t.Errorf("restart: %v", err)
		}
	}) {
		s.check(t)
		if s.strategy == "redis-stock" {
			rigtest.Eventually(t, "the row has all sales", func() (bool, string) {
				row, count := s.left(t, "none"), s.left(t, s.strategy)
				return row == count, fmt.Sprintf("the row has %d, Redis %d", row, count)
			})
		}
	}
}

// sales are the sales of one product with one strategy.
type sales struct {
	strategy string
	product  int
	history.History
}

// manyPieces is more than all sales take.
const manyPieces = 1_000_000

// sellDuring sells with all strategies at the same time, each strategy another product. When each
// has sold 50 pieces, sellDuring calls meanwhile. The sales end when each strategy has sold 20 more. A
// short lease ends the wait for a lock that nobody releases.
func sellDuring(t *testing.T, strategies []string, meanwhile func([]*sales)) (all []*sales) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	var loads sync.WaitGroup
	defer loads.Wait()
	defer end()
	for i, strategy := range strategies {
		s := &sales{strategy: strategy, product: 501 + i}
		all = append(all, s)
		must(t, labClients(t).Target.Call(t.Context(), http.MethodPut, fmt.Sprintf("/stock/%d?new=true&count=%d", s.product, manyPieces), nil, nil))
		loads.Go(func() {
			var err error
			s.History, err = load.Run(ctx, load.Plan{
				Target: testLab.Addresses().Target, Strategy: strategy, Product: s.product, Qty: 1,
				Clients: 5, Loops: 100_000, Every: 60 * time.Millisecond, Wait: 10 * time.Second, Lease: leaseOf(strategy),
			}, nil)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: the load ended with %v", strategy, err)
			}
		})
	}
	for _, s := range all {
		s.sell(t, 50)
	}
	meanwhile(all)
	for _, s := range all {
		s.sell(t, 20)
	}
	return all
}

// leaseOf returns the lease of a sale, for the strategies that have one.
func leaseOf(strategy string) time.Duration {
	if slices.Contains([]string{"db-row", "redis", "redlock", "cohort-redis", "cohort-redlock", "etcd"}, strategy) {
		return 3 * time.Second
	}
	return 0
}

// sell waits until pieces more are sold.
func (s *sales) sell(t *testing.T, pieces int) {
	t.Helper()
	before := s.left(t, s.strategy)
	rigtest.Eventually(t, fmt.Sprintf("%s sells %d pieces", s.strategy, pieces), func() (bool, string) {
		n := s.left(t, s.strategy)
		return n <= before-pieces, fmt.Sprintf("%d left of %d", n, before)
	})
}

// left returns the remaining stock from the backend in which the strategy keeps the stock.
func (s *sales) left(t *testing.T, strategy string) (n int) {
	t.Helper()
	rigtest.Eventually(t, "the stock of "+s.strategy, func() (bool, string) {
		r := ask(t, http.MethodGet, testLab.Addresses().Replicas[0], fmt.Sprintf("/stock/%d?strategy=%s", s.product, strategy))
		n = r.Count
		return r.HTTP == http.StatusOK, fmt.Sprintf("%+v", r)
	})
	return n
}

// check checks that the stock fell by the successful sales, plus at most those without an answer,
// some of which may still run.
func (s *sales) check(t *testing.T) {
	t.Helper()
	var verdict check.Conservation
	rigtest.Eventually(t, s.strategy+": the stock agrees with the sales", func() (bool, string) {
		verdict = check.Stock(s.Ops, manyPieces, s.left(t, s.strategy))
		return verdict.LostMin <= 0 && verdict.LostMax >= 0, fmt.Sprintf("%+v", verdict)
	})
	t.Logf("%s: %d sold, %d refused, %d unknown", s.strategy, verdict.Sold, len(s.Ops)-verdict.Sold-verdict.Unknown, verdict.Unknown)
}
