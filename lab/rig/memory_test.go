package rig_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestZookeeperOutOfMemory checks that a ZooKeeper server without free memory ends, and that the
// rig reports this. The server must not continue without some of its threads.
func TestZookeeperOutOfMemory(t *testing.T) {
	rigtest.Nightly(t, "TestOnExit of ./lab/rig")
	exits := make(chan rig.Exit, 1)
	r := rigtest.Start(t, rig.Config{Zookeeper: 1, OnExit: func(e rig.Exit) { exits <- e }})
	conn, _, err := zk.Connect(r.Addresses().Zookeeper, 30*time.Second, zk.WithLogInfo(false), zk.WithLogger(silence{}))
	must(t, err)
	defer conn.Close()
	data := make([]byte, 1_000_000)
	for i := range 400 { // in MB; the heap has 256
		if _, err = conn.Create(fmt.Sprintf("/large-%d", i), data, 0, zk.WorldACL(zk.PermAll)); err != nil {
			break
		}
	}
	select {
	case e := <-exits:
		if e.Name != "zookeeper" || !strings.Contains(e.Tail, "OutOfMemoryError") {
			t.Errorf("reported %+v", e)
		}
	case <-time.After(5 * time.Minute):
		t.Errorf("the last write failed with %v, and the server goes on", err)
	}
}
