package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/lab/rig/rigtest"
	"oversell/trial/explore"
)

// TestExplore searches the schedules of none, and repeats the shortest one that loses an update.
func TestExplore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.json")
	status, out, message := execute(t, "explore", "none", "--full", "--json", path)
	if status != 0 || !strings.Contains(out, "6 schedules (all schedules within these bounds)") || !strings.Contains(out, "       4 lose an update") {
		t.Errorf("status %d, %s%s", status, out, message)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r explore.Result
	if err := json.Unmarshal(file, &r); err != nil || r.Schedules != 6 || r.Oversold != 4 || !r.Complete {
		t.Errorf("%v, %+v", err, r)
	}
	_, trail, _ := strings.Cut(strings.TrimSpace(out), "trail: ")
	if status, out, message = execute(t, "explore", "none", "--replay", trail); status != 0 || !strings.Contains(out, "An update is lost.") {
		t.Errorf("status %d, %s%s", status, out, message)
	}
	if status, out, message = execute(t, "explore", "none", "--replay", "A,A,B,B"); status != 0 || !strings.Contains(out, "4. B: write the stock on mysql.") || !strings.Contains(out, "No update is lost.") {
		t.Errorf("status %d, %s%s", status, out, message)
	}
	if _, out, _ = execute(t, "explore", "redis-lua", "--pauses", "2", "--limit", "1ns"); !strings.Contains(out, "not all schedules") {
		t.Errorf("with a limit: %s", out)
	}
}

// TestExploreForeign compiles a program that hands locks of other libraries over.
func TestExploreForeign(t *testing.T) {
	rigtest.Nightly(t, "TestForeign of ./trial/explore")
	for args, want := range map[string][]string{
		"redsync":                                  {"redsync, 2 clients: 6 schedules (all schedules", "       0 lose an update"},
		"redsync-3 --failovers 2 --random 50":      {"redsync-3, 2 clients: 50 schedules (drawn at random)", "a probability of at least 1 in "},
		"bsm/redislock --replay A,A,A,A,B,B,B,B":   {"1. A: SET", "A sold, B sold; 8 of 10 are left. No update is lost."},
		"bsm/redislock --lost-replies 1 --limit 1": {"time: missing unit"},
		"redislock":                                {`no lock "redislock", only redsync, redsync-3, bsm/redislock`},
	} {
		_, out, message := execute(t, strings.Fields("explore --go ../adapters/examples/schedules "+args)...)
		for _, text := range want {
			if !strings.Contains(out+message, text) {
				t.Errorf("%s: %s%s does not say %q", args, out, message, text)
			}
		}
	}
}

func TestExploreRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"explore":                            "explore: name one strategy",
		"explore rediss":                     `did you mean "redis"?`,
		"explore redis-stock":                `try "oversell break race redis-stock"`,
		"explore for-update":                 "for-update needs a server that explore does not have in memory",
		"explore etcd":                       "etcd needs a server that explore does not have in memory",
		"explore redis-lua --fenced":         "redis-lua has no fencing token",
		"explore redis --clients 9":          "--clients 9: must be 1 to 5",
		"explore redis --pauses -1":          "--pauses -1: must not be negative",
		"explore none --replay A,B,C":        `step 3 of the trail is "C"`,
		"explore none --replay A,B":          "the trail ends after 2 steps",
		"explore none --replay A,B --json x": "--replay writes no file",
		"explore none --replay A,A,B,B,":     "the schedule ended after 4 of the 5 steps",
		"explore none --random -1":           "--random -1: must not be negative",
		"explore none --random 9 --depth 11": "--depth 11: must be 1 to 10",
		"explore none --random 9 --replay A": "--replay runs one schedule: it cannot be used with --random",
		"explore --go . --all":               "--all searches our strategies: it cannot be used with --go",
	} {
		if status, _, message := execute(t, strings.Fields(args)...); status != 2 || !strings.Contains(message, want) {
			t.Errorf("%s: status %d, %s want %s", args, status, message, want)
		}
	}
}
