package cli

import (
	"strings"
	"testing"

	"oversell/trial/explore"
)

// TestPlanOf says schedules that lose an update in the words of a plan. A test of break carries such plans out.
func TestPlanOf(t *testing.T) {
	for scope, want := range map[explore.Scope]string{
		{Strategy: "none", Bounds: explore.Bounds{Clients: 2}}:                         "A sells at writing, B sells at writing, A resumes, B resumes",
		{Strategy: "redis", Bounds: explore.Bounds{Clients: 2, Failovers: 1}}:          "A sells at writing, redis fails over, B sells at writing, A resumes, B resumes",
		{Strategy: "redis-lua", Bounds: explore.Bounds{Clients: 2, Pauses: 1}}:         "A sells at writing, B sells, A stops, A freezes, a lease passes, B ends, A thaws, A resumes",
		{Strategy: "zk", Bounds: explore.Bounds{Clients: 2, Expiries: 1}}:              "A sells at writing, B sells at writing, A loses its session, B stops, A resumes, B resumes",
		{Strategy: "redis-setnx", Bounds: explore.Bounds{Clients: 2, Crashes: 1}}:      "A sells at granted, B sells, A dies, a lease passes, B ends",
		{Strategy: "redis-expire", Bounds: explore.Bounds{Clients: 2, LostReplies: 1}}: "",
	} {
		r, err := explore.Search(t.Context(), scope, func(explore.Result) {})
		if err != nil || len(r.Shortest) == 0 {
			t.Fatalf("%v: %v, %v", scope, r.Shortest, err)
		}
		got, ok := planOf(r.Shortest)
		if ok != (want != "") || ok && !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", scope, got, want)
		}
	}
}
