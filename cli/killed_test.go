package cli_test

import (
	"fmt"
	"net/http"
	"testing"

	"oversell/lab/check"
)

// A replica is killed in mid-run, and comes back. What was answered as sold is sold, and
// nothing else but what nobody had an answer for: also where a replica answers for many
// at once (combining), before the row has heard of it (redis-stock), or for a lock that
// it passes on to its own (cohorts). What a dead one had set aside comes back.
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
	h := storm(t, strategy, 30, 200, func() {
		eventually(t, "business is brisk", func() (bool, string) {
			n := leftOf(t, strategy)
			return n < initial-300, fmt.Sprintf("%d left", n)
		})
		replica := server(t, "replica-2")
		replica.Kill()
		if err := replica.Start(t.Context()); err != nil {
			t.Errorf("start it again: %v", err)
		}
	})
	eventually(t, "the account is settled", func() (bool, string) {
		n := leftOf(t, strategy)
		verdict := check.Stock(h.Ops, initial, n)
		return verdict.LostMin <= 0 && verdict.LostMax >= 0, fmt.Sprintf("%d left: %+v", n, verdict)
	})
	if strategy == "redis-stock" {
		eventually(t, "the row has heard of all sales", func() (bool, string) {
			row, count := left(t), leftOf(t, strategy)
			return row == count, fmt.Sprintf("the row says %d, Redis %d", row, count)
		})
	}
	verdict := check.Stock(h.Ops, initial, leftOf(t, strategy))
	if verdict.Sold < 300 {
		t.Errorf("hardly anything was sold: %+v", verdict)
	}
	t.Logf("%d sold, %d refused, %d unknown", verdict.Sold, len(h.Ops)-verdict.Sold-verdict.Unknown, verdict.Unknown)
}

// leftOf is what can still be sold, wherever the strategy keeps it.
func leftOf(t *testing.T, strategy string) int {
	t.Helper()
	return ask(t, http.MethodGet, shop.Addresses().Replicas[0], "/stock/1?strategy="+strategy).Count
}
