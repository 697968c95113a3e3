package interop

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks/zklock"
)

// onZooKeeper returns the side of the strategy zk, which is compatible with Curator's
// InterProcessMutex.
func onZooKeeper(t *testing.T) side {
	t.Helper()
	address := servers.Addresses().Zookeeper[0]
	session, err := zklock.Open([]string{address}, 20*time.Second, zklock.Access{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	queued := func(t *testing.T, key string) int {
		t.Helper()
		nodes, _, err := session.Children("/oversell/zk/" + key)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			t.Fatal(err)
		}
		return len(nodes)
	}
	return side{
		strategy: "zk", address: address, locker: zklock.ZK(session),
		// The queue has one node for the holder and one for each waiter.
		waiting: func(t *testing.T, key string) bool { t.Helper(); return queued(t, key) > 1 },
		free:    func(t *testing.T, key string) bool { t.Helper(); return queued(t, key) == 0 },
		// Curator does not return the number of acquisitions, so OnCurator.java returns at most 1.
		count: func(n int) string { return strconv.Itoa(min(n, 1)) },
	}
}
