package cli_test

import (
	"fmt"
	"regexp"
	"testing"

	"oversell/lab/rig/rigtest"
)

// TestRollingRestart restarts all replicas under the load of 30 clients, in make nightly once for each
// of three strategies. No request may fail, and no lock may be left behind.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	strategies := []string{"redis"}
	if rigtest.IsNightly() {
		strategies = []string{"for-update", "redis", "zk"}
	}
	r := runProgram(t, built(), append(strategies, "--rolling-restart", "--clients", "30", "--loops", "10", "--quiet", "--json", "-")...)
	if r.status != 0 {
		t.Fatalf("status %d\n%s%s", r.status, r.out, r.err)
	}
	all := rows(t, r.out)
	if len(all) != len(strategies) {
		t.Fatalf("%+v", all)
	}
	for i, got := range all {
		want := row{
			Strategy: strategies[i], Samples: got.Sold, Sold: got.Sold, Remaining: 1_000_000 - got.Sold, Verdict: "holds",
			Min: got.Min, Median: got.Median,
		}
		if got != want || got.Sold < 300 {
			t.Errorf("%+v, want %+v, and 300 or more sold", got, want)
		}
	}
	sum := regexp.MustCompile(fmt.Sprintf(`(?m)^rolling restart: [0-9,]+ requests, 0 failed, %d restarts, 0 locks left behind$`, 3*len(strategies)))
	if !sum.MatchString(r.err) { // the JSON is on stdout
		t.Errorf("the sum is missing in:\n%s", r.err)
	}
}
