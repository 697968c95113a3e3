package report

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/measure"
)

func TestAdvice(t *testing.T) {
	run := func(strategy string, v api.Verdict, safe bool, perSecond float64) measure.Result {
		return measure.Result{Strategy: strategy, Verdict: v, Safe: safe, ThroughputPerS: perSecond, Samples: 10}
	}
	none, redis, zk := run("none", api.Broken, false, 900), run("redis", api.Holds, true, 300), run("zk", api.Holds, true, 200)
	down, open := run("zk", api.Inconclusive, true, 4477), api.Text{EN: "zookeeper is unavailable: 10 of 10 requests", ZH: "zookeeper 不可用"}
	down.Cause = open
	lucky, partial := run("lucky", api.Holds, false, 999), run("stopped", api.Holds, true, 999)
	partial.Partial = true
	for want, results := range map[string][]measure.Result{
		"Of the 2 strategies that lost nothing here, as their cards claim, redis was the fastest: 300 requests/s.": {none, zk, redis, lucky, partial},
		"Only zk lost nothing here, as its card claims.":                                                           {none, zk, lucky},
		"None of these strategies is safe in such a run":                                                           {none, lucky},
		"redis lost nothing here, as its card claims. The run of zk is inconclusive. This is":                      {none, redis, down},
		"The run of zk is inconclusive. So these runs recommend no strategy.":                                      {none, down},
		"Compare at least two strategies for a recommendation.":                                                    {redis, partial},
	} {
		if got := Advice(results); !strings.HasPrefix(got.EN, want) || got.ZH == "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Headline(down); got.EN != "inconclusive: "+open.EN || measured(down, down.ThroughputPerS) != "-" || throughputBar(down)[0].Value != "-" || latencyBars(down)[0].Value != "-" {
		t.Errorf("%v, and the speed of errors as a speed", got)
	}
}
