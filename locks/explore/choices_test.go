package explore

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"oversell/lab/rig/rigtest"
)

// size returns the number of moves in a tree, and its depth. It checks that the numbers of the
// children sum up to that of their parent.
func size(t *testing.T, tree *Tree) (moves, depth int) {
	t.Helper()
	var sum Tree
	for _, c := range tree.Children {
		m, d := size(t, c)
		moves, depth = moves+1+m, max(depth, d+1)
		sum.Schedules, sum.Oversold, sum.Stalled = sum.Schedules+c.Schedules, sum.Oversold+c.Oversold, sum.Stalled+c.Stalled
		if c.Text == "" || c.Token == "" {
			t.Errorf("a move without a text: %+v", c.Step)
		}
	}
	if len(tree.Children) > 0 && (sum.Schedules != tree.Schedules || sum.Oversold != tree.Oversold || sum.Stalled != tree.Stalled || tree.Outcome != "") {
		t.Errorf("after %q: %d, %d, %d schedules, but %d, %d, %d below", tree.Text, tree.Schedules, tree.Oversold, tree.Stalled, sum.Schedules, sum.Oversold, sum.Stalled)
	}
	return moves, depth
}

// upper returns a copy of the tree down to a depth.
func upper(t *Tree, depth int) *Tree {
	c := *t
	c.Children = nil
	for _, child := range t.Children {
		if depth > 0 {
			c.Children = append(c.Children, upper(child, depth-1))
		}
	}
	return &c
}

// TestTree checks that the tree has the numbers of the result, that it is the same whatever the number
// of workers, and that it is as deep as its limit allows.
func TestTree(t *testing.T) {
	scope := Scope{Strategy: "redis-uuid", Bounds: Bounds{Clients: 2, LostReplies: 1}}
	search := func(limit, workers int) *Tree {
		t.Helper()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		r, tree, err := SearchTree(t.Context(), scope, limit, nil)
		if err != nil || tree.Schedules != r.Schedules || tree.Oversold != r.Oversold || tree.Stalled != r.Stalled {
			t.Errorf("%v: the result has %d, %d, %d schedules, and the tree %d, %d, %d",
				err, r.Schedules, r.Oversold, r.Stalled, tree.Schedules, tree.Oversold, tree.Stalled)
		}
		return tree
	}
	all := search(1e6, 1)
	moves, depth := size(t, all)
	t.Logf("%d schedules, %d moves, depth %d", all.Schedules, moves, depth)
	if again := search(1e6, 4); !reflect.DeepEqual(all, again) {
		t.Error("the tree of four workers differs")
	}
	limits := []int{40}
	if rigtest.IsNightly() {
		limits = append(limits, moves/2, 1, 0)
	}
	for _, limit := range limits {
		for _, workers := range []int{1, 4} {
			tree := search(limit, workers)
			kept, d := size(t, tree)
			if kept > limit || d >= depth || !reflect.DeepEqual(tree, upper(all, d)) {
				t.Errorf("limit %d, %d workers: %d moves, depth %d, not the upper part of the whole tree", limit, workers, kept, d)
			}
			if next, _ := size(t, upper(all, d+1)); next <= limit {
				t.Errorf("limit %d: a tree of depth %d would fit: %d moves", limit, d+1, next)
			}
		}
	}
}

// TestSteps checks the client and the server of each kind of step.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		strategy, trail, want string
		bounds                Bounds
	}{
		{"redis-lua", "A,B,hold-A,time,B,time,B,time,B,time,B,B,B,B,resume-A,A", "A redis-1, B redis-1, A mysql,  , B redis-1,  , B redis-1,  , B redis-1,  , B redis-1, B mysql, B mysql, B redis-1, A , A mysql", Bounds{Pauses: 1}},
		{"redis-lua", "lose-A,crash-B", "A redis-1, B ", Bounds{LostReplies: 1, Crashes: 1}},
		{"redis", "begin-B,failover-1", "B ,  redis-1", Bounds{Failovers: 1}},
		{"zk-ephemeral", "A,expire-A", "A zookeeper, A zookeeper", Bounds{Expiries: 1}},
		{"etcd", "A,A,expire-A", "A etcd, A etcd, A etcd", Bounds{Expiries: 1}},
	} {
		tt.bounds.Clients = 2
		steps, _, _ := Replay(Scope{Strategy: tt.strategy, Bounds: tt.bounds}, strings.Split(tt.trail, ","))
		var found []string
		for _, s := range steps {
			found = append(found, s.Client+" "+s.Server)
		}
		if got := strings.Join(found, ", "); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.strategy, tt.trail, got, tt.want)
		}
	}
}
