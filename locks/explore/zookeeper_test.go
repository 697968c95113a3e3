package explore

import (
	"strings"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestZooKeeper runs the same scripts on the server in memory and on a real ZooKeeper. Both must give
// the answers that a script names, in full: the results, the errors, the events and their order.
//
// Left out, because no lock and not the driver uses it: access lists, quotas, containers, nodes with a
// TTL, times in a Stat, limits of time-outs and of sizes, paths that the driver rejects, the
// authentication, the operations sync, getChildren and reconfig, persistent and recursive watches, the
// names of ZooKeeper's own nodes, and what differs between the servers of an ensemble.
func TestZooKeeper(t *testing.T) {
	addr := rigtest.Start(t, rig.Config{Zookeeper: true}).Addresses().Zookeeper[0]
	for _, c := range zookeeperScripts() {
		t.Run(c.name, func(t *testing.T) {
			compare := func(t *testing.T, notes string) {
				t.Helper()
				if want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", ""); notes != want {
					t.Errorf("got\n%s\n\nwant\n%s", notes, want)
				}
			}
			t.Run("memory", func(t *testing.T) { compare(t, inMemory(t, c.do)) })
			t.Run("ZooKeeper", func(t *testing.T) {
				t.Parallel()
				compare(t, onServer(t, addr, c.do))
			})
		})
	}
}
