package explore

import (
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestZooKeeper runs the same scripts on the server in memory and on a real ZooKeeper. Both must give the
// same answers, in full: the results, the errors, the events and their order. With -v, it writes them.
//
// Left out, because no lock and not the driver uses it: access lists, quotas, containers, nodes with a
// TTL, times in a Stat, limits of time-outs and of sizes, paths that the driver rejects, the
// authentication, the operations sync, getChildren and reconfig, persistent and recursive watches, the
// names of ZooKeeper's own nodes, and what differs between the servers of an ensemble.
func TestZooKeeper(t *testing.T) {
	addr := rigtest.Start(t, rig.Config{Zookeeper: true}).Addresses().Zookeeper[0]
	for _, c := range zookeeperScripts() {
		t.Run(c.name, func(t *testing.T) {
			memory := inMemory(t, c.do)
			t.Parallel() // a script may wait for seconds until a session ends
			sameAnswers(t, memory, onServer(t, addr, c.do))
		})
	}
}
