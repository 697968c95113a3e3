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
// TTL, times in a Stat, limits of time-outs and of sizes, wrong passwords, paths that the driver rejects, the
// authentication, the operations sync, getChildren and reconfig, watches other than on the data of a node, the
// names of ZooKeeper's own nodes, and what differs between the servers of an ensemble.
func TestZooKeeper(t *testing.T) {
	addr := rigtest.Start(t, rig.Config{Zookeeper: 1}).Addresses().Zookeeper[0]
	for _, c := range zookeeperScripts() {
		t.Run(c.name, func(t *testing.T) {
			memory := inMemory(t, c.do)
			t.Parallel() // a script may wait for seconds until a session ends
			sameAnswers(t, memory, onServer(t, addr, c.do))
		})
	}
}

// sameAnswers compares what a script has got from a server in memory and from a real one.
func sameAnswers(t *testing.T, memory, really string) {
	t.Helper()
	t.Logf("a real server answers\n%s", really)
	if memory != really || memory == "" {
		t.Errorf("the server in memory answers\n%s", memory)
	}
}

// TestZooKeeperRefuses checks that the server in memory refuses the watches that it does not have.
func TestZooKeeperRefuses(t *testing.T) {
	inMemory(t, func(s *script) {
		a := s.client("A", longSession)
		_, _, _, onMissing := a.ExistsW(s.dir + "/n")
		_, _, _, onChildren := a.ChildrenW(s.dir)
		if onMissing == nil || onChildren == nil {
			t.Errorf("existence: %v, children: %v", onMissing, onChildren)
		}
	})
}
