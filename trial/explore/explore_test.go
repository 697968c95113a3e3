package explore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"oversell/lab/rig/rigtest"
)

func tokens(steps []Step) (trail []string) {
	for _, s := range steps {
		trail = append(trail, s.Token)
	}
	return trail
}

func complete(t *testing.T, strategy string, b Bounds, full bool) Result {
	t.Helper()
	r, err := Search(t.Context(), Scope{Strategy: strategy, Bounds: b, Full: full}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete || r.Schedules == 0 {
		t.Fatalf("%s, %+v: the search is not complete after %d schedules", strategy, b, r.Schedules)
	}
	return r
}

// TestFindings searches small bounds, and compares with what the cards say. Outside of make nightly, it
// searches a fault of each kind that breaks a lock: TestCorrect has locks that hold.
func TestFindings(t *testing.T) {
	for name, tt := range map[string]struct {
		strategy          string
		bounds            Bounds
		oversells, stalls bool
	}{
		"no fault":                         {"redis", Bounds{Clients: 2}, false, false},
		"three clients":                    {"redis", Bounds{Clients: 3}, false, false},
		"ZooKeeper":                        {"zk-ephemeral", Bounds{Clients: 2}, false, false},
		"ZooKeeper, a crash":               {"zk", Bounds{Clients: 2, Crashes: 1}, false, false},
		"ZooKeeper, an expiry":             {"zk-ephemeral", Bounds{Clients: 2, Expiries: 1}, true, false},
		"ZooKeeper, an expiry, fenced":     {"zk", Bounds{Clients: 2, Expiries: 1, Fenced: true}, false, false},
		"no lock":                          {"none", Bounds{Clients: 2}, true, false},
		"a pause, no expiry":               {"redis-setnx", Bounds{Clients: 2, Pauses: 1}, false, false},
		"a pause":                          {"redis-lua", Bounds{Clients: 2, Pauses: 1}, true, false},
		"a crash, no expiry":               {"redis-setnx", Bounds{Clients: 2, Crashes: 1}, false, true},
		"a crash between SETNX and EXPIRE": {"redis-setnx-expire", Bounds{Clients: 2, Crashes: 1}, false, true},
		"a crash":                          {"redis", Bounds{Clients: 2, Crashes: 1}, false, false},
		"a lost reply":                     {"redis", Bounds{Clients: 2, LostReplies: 1}, false, false},
		"a fail-over":                      {"redis", Bounds{Clients: 2, Failovers: 1}, true, false},
		"three masters":                    {"redlock", Bounds{Clients: 2}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains([]string{"no lock", "a pause", "a crash, no expiry", "a fail-over", "ZooKeeper, an expiry", "ZooKeeper, an expiry, fenced"}, name) {
				rigtest.Nightly(t, "TestCorrect and TestFindings of ./trial/explore")
			}
			r := complete(t, tt.strategy, tt.bounds, false)
			t.Logf("%d schedules: %d oversold, %d stalled, %v", r.Schedules, r.Oversold, r.Stalled, r.Outcomes)
			if (r.Oversold > 0) != tt.oversells || (r.Stalled > 0) != tt.stalls {
				t.Errorf("of %d schedules, %d lose an update and %d stall: %v", r.Schedules, r.Oversold, r.Stalled, r.Outcomes)
			}
			if (r.Harm == LosesUpdate) != tt.oversells || (r.Harm == WaitsInVain) != (tt.stalls && !tt.oversells) {
				t.Errorf("the shortest schedule is %q", r.Harm)
			}
			if r.Shortest == nil {
				return
			}
			steps, outcome, err := Replay(Scope{Strategy: tt.strategy, Bounds: tt.bounds}, tokens(r.Shortest))
			if err != nil || !does(outcome, r.Harm) || !slices.Equal(steps, r.Shortest) {
				t.Errorf("the shortest schedule, again: %v, %v", outcome, err)
			}
		})
	}
}

// TestReduction checks that the reduced search finds each outcome that the full search finds. Outside of
// make nightly, it runs the shortest searches.
func TestReduction(t *testing.T) {
	for _, tt := range []struct {
		strategy string
		bounds   Bounds
		short    bool
	}{
		{"none", Bounds{Clients: 2, Pauses: 1}, false},
		{"redis", Bounds{Clients: 2}, false},
		{"redis-setnx", Bounds{Clients: 2, Crashes: 1}, false},
		{"redis-getset", Bounds{Clients: 2, LostReplies: 1}, false},
		{"redis-expire", Bounds{Clients: 2, Failovers: 1}, false},
		{"redis-expire", Bounds{Clients: 2, Pauses: 1}, false},
		{"redlock", Bounds{Clients: 1, Crashes: 1}, true},
		{"redlock", Bounds{Clients: 1, Failovers: 1}, false},
		{"redis-multi", Bounds{Clients: 2}, true},
		{"redis-multi", Bounds{Clients: 1, Pauses: 1}, false},
		{"zk", Bounds{Clients: 2}, true},
		{"zk-ephemeral", Bounds{Clients: 2, Expiries: 1}, false},
	} {
		t.Run(fmt.Sprintf("%s %+v", tt.strategy, tt.bounds), func(t *testing.T) {
			if !tt.short {
				rigtest.Nightly(t, "the shorter searches of TestReduction")
			}
			full, reduced := complete(t, tt.strategy, tt.bounds, true), complete(t, tt.strategy, tt.bounds, false)
			t.Logf("%d schedules, reduced %d", full.Schedules, reduced.Schedules)
			if !slices.Equal(slices.Sorted(maps.Keys(full.Outcomes)), slices.Sorted(maps.Keys(reduced.Outcomes))) {
				t.Errorf("the full search finds %v, the reduced one %v", full.Outcomes, reduced.Outcomes)
			}
			if reduced.Schedules > full.Schedules {
				t.Errorf("the reduced search runs %d schedules, the full one %d", reduced.Schedules, full.Schedules)
			}
		})
	}
}

// TestDeadWaiter checks that the session of a crashed client can end while another client works. In this
// schedule, A waits between the holder B and C, and crashes. C then takes the lock beside B.
func TestDeadWaiter(t *testing.T) {
	trail := strings.Split("B,A,A,B,B,C,C,C,crash-A,expire-A,C,C,B,B,C,C", ",")
	_, outcome, err := Replay(Scope{Strategy: "zk-watch-naive", Bounds: Bounds{Clients: 3, Crashes: 1}}, trail)
	if err != nil || !outcome.Two || !outcome.Oversold() {
		t.Errorf("%v, %v", outcome, err)
	}
}

// TestSameAgain checks that a search finds the same again.
func TestSameAgain(t *testing.T) {
	for _, strategy := range []string{"redis", "redis-uuid", "zk"} {
		b := Bounds{Clients: 2, LostReplies: 1}
		one, other := complete(t, strategy, b, false), complete(t, strategy, b, false)
		if !reflect.DeepEqual(one, other) {
			t.Errorf("%s: %+v, and again %+v", strategy, one, other)
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	for _, trail := range [][]string{{"A"}, {"C"}, {"A", "A", "A", "B", "B", "B", "B"}} {
		if _, _, err := Replay(Scope{Strategy: "none", Bounds: Bounds{Clients: 2}}, trail); err == nil {
			t.Errorf("the trail %v is accepted", trail)
		}
	}
	for _, strategy := range []string{"hope", "for-update", "mutex-in-tx", "redis-stock", "etcd"} {
		if _, err := Search(t.Context(), Scope{Strategy: strategy, Bounds: Bounds{Clients: 2}}, nil); err == nil {
			t.Errorf("the strategy %s is accepted", strategy)
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
