package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"oversell/lab/scenario"
	"oversell/locks/catalog"
)

// TestRunScenario checks that `oversell run coupon` prints a sentence for each guard, a table, and the
// results as JSON, on a lab that already runs. It also checks wrong command lines.
func TestRunScenario(t *testing.T) {
	binary, addrs := built(), testLab.Addresses()
	got := runProgram(t, binary, "coupon", "--guard", "none,unique", "--json", "-", "--target", addrs.Target, "--replicas", strings.Join(addrs.Replicas, ","))
	var results []scenario.Result
	if err := json.Unmarshal([]byte(got.out), &results); err != nil || got.status != 0 {
		t.Fatalf("%v in %+v", err, got)
	}
	if len(results) != 2 || results[0].Guard != "none" || results[0].Holds() || results[1].Guard != "unique" || !results[1].Holds() {
		t.Errorf("%+v", results)
	}
	for _, r := range results {
		if !strings.Contains(got.err, r.Sentence.EN) {
			t.Errorf("%q is missing in %q", r.Sentence.EN, got.err)
		}
	}
	if !strings.Contains(got.err, "│ unique │ safe ") || !strings.Contains(got.err, "✓ coupon, guard unique: ") || strings.Contains(got.err, "starting a lab") {
		t.Errorf("there is no table, or another lab, in %q", got.err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"coupon", "--guard", "prayer"}, `guard "prayer" does not exist; choose one of none, redis-early, redis, unique, redis-unique`},
		{[]string{"coupon", "--guard", "redis-erly"}, `guard "redis-erly" does not exist; did you mean "redis-early"?`},
		{[]string{"coupn"}, `strategy "coupn" does not exist; did you mean "coupon"?`},
		{[]string{"coupon", "--runs", "0"}, "runs 0"},
		{[]string{"coupon", "redis"}, "redis"},
		{[]string{"coupon", "--strategy", "redis"}, "strategy"},
		{[]string{"redis", "coupon"}, "coupon is a scenario, not a strategy"},
	} {
		if got := runProgram(t, binary, c.args...); got.status != 2 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("%q: want 2 and %q, got %+v", c.args, c.want, got)
		}
	}
}

// TestScenarioNamesAreFree checks that no scenario has the name of a strategy: `oversell run NAME`
// accepts names of scenarios and of strategies.
func TestScenarioNamesAreFree(t *testing.T) {
	taken := map[string]bool{}
	for _, card := range catalog.Cards() {
		taken[card.ID] = true
	}
	for _, s := range scenario.All() {
		if taken[s.ID] {
			t.Errorf("%s is a strategy as well", s.ID)
		}
		taken[s.ID] = true
	}
}
