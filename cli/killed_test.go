package cli_test

import (
	"fmt"
	"net/http"
	"testing"

	"oversell/lab/check"
)

// TestReplicaDiesInMidRun kills a replica during a run and starts it again. The stock must fall by
// the successful sales, plus at most the sales without an answer. This must also hold for
// strategies that answer many requests at once (combining) or write the row later (redis-stock). It
// must also hold if waiters of one replica pass the lock to each other (cohorts). Pieces that the
// killed replica had reserved must return to the stock.
func TestReplicaDiesInMidRun(t *testing.T) {
	for _, strategy := range []string{
		"for-update", "get-lock", "redis", "cohort-redis", "cohort-zk", "cohort-redlock", "etcd",
		"atomic", "skip-locked", "buckets", "reservation", "combining", "redis-stock",
	} {
		t.Run(strategy, func(t *testing.T) { replicaDies(t, strategy) })
	}
}

func replicaDies(t *testing.T, strategy string) {
	const initial = 1_000_000
	restock(t, initial)
	h := loadWith(t, strategy, 30, 200, func() {
		eventually(t, "300 pieces are sold", func() (bool, string) {
			n := leftOf(t, strategy)
			return n < initial-300, fmt.Sprintf("%d left", n)
		})
		replica := server(t, "replica-2")
		replica.Kill()
		if err := replica.Start(t.Context()); err != nil {
			t.Errorf("restart: %v", err)
		}
	})
	eventually(t, "the stock agrees with the sales", func() (bool, string) {
		n := leftOf(t, strategy)
		verdict := check.Stock(h.Ops, initial, n)
		return verdict.LostMin <= 0 && verdict.LostMax >= 0, fmt.Sprintf("%d left: %+v", n, verdict)
	})
	if strategy == "redis-stock" {
		eventually(t, "the row has all sales", func() (bool, string) {
			row, count := left(t), leftOf(t, strategy)
			return row == count, fmt.Sprintf("the row has %d, Redis %d", row, count)
		})
	}
	verdict := check.Stock(h.Ops, initial, leftOf(t, strategy))
	if verdict.Sold < 300 {
		t.Errorf("fewer than 300 pieces were sold: %+v", verdict)
	}
	t.Logf("%d sold, %d refused, %d unknown", verdict.Sold, len(h.Ops)-verdict.Sold-verdict.Unknown, verdict.Unknown)
}

// leftOf returns the remaining stock from the backend in which the strategy keeps the stock.
func leftOf(t *testing.T, strategy string) int {
	t.Helper()
	return ask(t, http.MethodGet, testLab.Addresses().Replicas[0], "/stock/1?strategy="+strategy).Count
}
