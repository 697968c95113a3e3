package fault

import (
	"strings"
	"testing"
)

// TestTogether checks the name of faults at the same time: a recording must not name only the last one.
func TestTogether(t *testing.T) {
	for faults, want := range map[string]string{
		"stop@replica-1":            "stop@replica-1",
		"kill@redis-4 kill@redis-5": "kill@redis-4, redis-5",
		"locks deleted@redis":       "locks deleted@redis",
		"reset by redis-4@replica-1 reset by redis-5@replica-1":                                                      "reset by redis-4, redis-5@replica-1",
		"cut from mysql@replica-1 cut from mysql@replica-2":                                                          "cut from mysql@replica-1, replica-2",
		"clock jumps by 1h0m0s@redis-1 clock jumps by 1h0m0s@redis-2":                                                "clock jumps by 1h0m0s@redis-1, redis-2",
		"cut from redis-1@replica-1 cut from redis-2@replica-1 cut from zookeeper@replica-1 cut from etcd@replica-1": "cut from redis, zookeeper, etcd@replica-1",
	} {
		var all []Fault
		for rest := faults; rest != ""; {
			name, after, _ := strings.Cut(rest, "@")
			target, more, _ := strings.Cut(after, " ")
			all, rest = append(all, Fault{Name: name, Target: target}), more
		}
		if what, who := nameOf(all); what+"@"+who != want {
			t.Errorf("%s: %s@%s, want %s", faults, what, who, want)
		}
	}
}
