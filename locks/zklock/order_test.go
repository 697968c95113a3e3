package zklock

import (
	"math"
	"testing"
)

func TestSequence(t *testing.T) {
	for _, test := range []struct {
		name string
		want int32
		ok   bool
	}{
		{"_c_8f7d3c5a-lock-0000000007", 7, true},
		{"_c_8f7d3c5a-lock-2147483647", math.MaxInt32, true},
		{"_c_8f7d3c5a-lock--2147483648", math.MinInt32, true}, // the counter has wrapped
		{"_c_8f7d3c5a-lock--0000000005", -5, true},
		{"_c_8f7d3c5a-lock-", 0, false},
		{"_c_8f7d3c5a-lock-12x", 0, false},
		{"_c_8f7d3c5a-lock-2147483648", 0, false}, // more than an int32
		{"_c_8f7d3c5a-READ-0000000007", 0, false}, // Curator's read-write lock
		{"0000000007", 0, false},
		{"x-lock-0000000007", 0, false}, // not Curator's prefix
		{"_c_8f7d3c5a-lock-7", 0, false},
		{"", 0, false},
	} {
		if got, ok := sequence(test.name); ok != test.ok || ok && got != test.want {
			t.Errorf("%q: %d, %v; want %d, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}

// TestNearestBefore checks that the order of nodes is that of their sequence numbers, not of their
// GUIDs, even after the sequence has wrapped. Nodes that belong to no lock are ignored.
func TestNearestBefore(t *testing.T) {
	for _, test := range []struct {
		name, own string
		names     []string
		want      string
		found     bool
	}{
		{
			"by sequence", "_c_m-lock-0000000005",
			[]string{"_c_a-lock-0000000012", "_c_b-lock-0000000001", "_c_z-lock-0000000003", "_c_c-lock-0000000002", "_c_m-lock-0000000005"},
			"_c_z-lock-0000000003", true,
		},
		{"first", "_c_m-lock-0000000005", []string{"_c_a-lock-0000000012", "_c_m-lock-0000000005"}, "", true},
		{
			"over the wrap", "_c_c-lock--2147483647",
			[]string{"_c_a-lock--2147483648", "_c_b-lock-2147483646", "_c_c-lock--2147483647", "_c_d-lock-2147483647"},
			"_c_a-lock--2147483648", true,
		},
		{
			"first after the wrap", "_c_a-lock--2147483648",
			[]string{"_c_a-lock--2147483648", "_c_b-lock-2147483646", "_c_c-lock--2147483647", "_c_d-lock-2147483647"},
			"_c_d-lock-2147483647", true,
		},
		{
			"from below zero to above it", "_c_a-lock-0000000000",
			[]string{"_c_a-lock-0000000000", "_c_b-lock--0000000001"},
			"_c_b-lock--0000000001", true,
		},
		{
			"no lock's nodes", "_c_b-lock-0000000002",
			[]string{"config", "_c_a-READ-0000000001", "_c_b-lock-0000000002", "x-lock-abc", "_c_b-lock-"},
			"", true,
		},
		{
			"skipped", "_c_b-lock-0000000003",
			[]string{"_c_skip-lock-0000000002", "_c_b-lock-0000000003", "_c_a-lock-0000000001"},
			"_c_a-lock-0000000001", true,
		},
		{"not in the list", "_c_b-lock-0000000002", []string{"_c_a-lock-0000000001"}, "_c_a-lock-0000000001", false},
		{"no nodes", "_c_b-lock-0000000002", nil, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			skip := func(name string) bool { return name == "_c_skip-lock-0000000002" }
			if got, found := nearestBefore(test.own, numberedNodes(test.names), skip); got != test.want || found != test.found {
				t.Errorf("%q, found %v; want %q, found %v", got, found, test.want, test.found)
			}
		})
	}
}
