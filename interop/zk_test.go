package interop

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks/zklock"
)

// onZooKeeper is the strategy zk, which Curator calls an InterProcessMutex.
func onZooKeeper(t *testing.T) side {
	t.Helper()
	address := servers.Addresses().Zookeeper[0]
	session, err := zklock.Open([]string{address}, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	row := func(t *testing.T, key string) int {
		t.Helper()
		nodes, _, err := session.Children("/oversell/zk/" + key)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			t.Fatal(err)
		}
		return len(nodes)
	}
	return side{
		strategy: "zk", address: address, locker: zklock.ZK(session),
		// Behind the holder's node stands that of the waiter.
		waiting: func(t *testing.T, key string) bool { t.Helper(); return row(t, key) > 1 },
		free:    func(t *testing.T, key string) bool { t.Helper(); return row(t, key) == 0 },
		// Curator tells only whether it holds.
		count: func(n int) string { return strconv.Itoa(min(n, 1)) },
	}
}
