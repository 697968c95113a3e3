package experiment

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/player"
	"oversell/lab/rig/rigtest"
)

// These hazards are what the requests do themselves.
var uninjected = []api.Hazard{ //nolint:gochecknoglobals // constant
	"race", "replica-race", "early-release", "cas-storm", "deadlock", "overrun", "nesting", "polling", "herd", "write-behind",
}

// TestNothingInjected carries out the hazards that cause a fault, without the fault, on strategies of each backend. No
// run may have a verdict: a lock that nothing has reached would be called safe.
func TestNothingInjected(t *testing.T) {
	bed := open(t)
	often := []api.Hazard{"crash", "cutoff", "lost-reply"}
	for _, e := range All() {
		if !rigtest.IsNightly() && !slices.Contains(often, e.Hazard) {
			continue
		}
		var subjects []player.Subject
		add := func(c api.Card, fenced bool) {
			if !slices.ContainsFunc(subjects, func(s player.Subject) bool { return s.Card.ID == c.ID && s.Fenced == fenced }) {
				subjects = append(subjects, player.Subject{Card: c, Fenced: fenced})
			}
		}
		for name := range verdicts[e.Hazard] {
			id, fenced := strings.CutSuffix(name, " --fenced")
			add(bed.Cards[slices.IndexFunc(bed.Cards, func(c api.Card) bool { return c.ID == id })], fenced)
		}
		for _, service := range api.LockServices() {
			i := slices.IndexFunc(bed.Cards, func(c api.Card) bool { return c.Locker && c.LockService() == service && e.AppliesTo(c) })
			if i >= 0 && rigtest.IsNightly() {
				add(bed.Cards[i], false)
			}
		}
		idle(t, bed, e, subjects)
	}
}

// TestNothingInjectedOnTrial does the same for locks of other programs, on each backend, and the hazards that apply
// only to them.
func TestNothingInjectedOnTrial(t *testing.T) {
	rigtest.Nightly(t, "TestNothingInjected of ./lab/experiment")
	for _, lock := range []string{"redis", "redlock", "zk", "etcd", "db-row", "get-lock"} {
		t.Run(lock, func(t *testing.T) {
			cfg := player.Config(servers.Config().Binary, "token")
			cfg.ReplicaArgs = append(cfg.ReplicaArgs, "--adapter", cfg.Binary+" adapter "+lock)
			bed := openOn(t, rigtest.Start(t, cfg))
			onTrial := bed.Cards[slices.IndexFunc(bed.Cards, api.Card.OnTrial)]
			for _, e := range All() {
				if verdicts[e.Hazard] == nil && e.AppliesTo(onTrial) {
					idle(t, bed, e, []player.Subject{{Card: onTrial}})
				}
			}
		})
	}
}

// idle carries out an experiment without its fault.
func idle(t *testing.T, bed *player.Testbed, e Experiment, subjects []player.Subject) {
	t.Helper()
	if e.Lab != nil || len(subjects) == 0 || slices.Contains(uninjected, e.Hazard) {
		return
	}
	t.Run(string(e.Hazard), func(t *testing.T) {
		bed.Idle = true
		defer func() { bed.Idle = false }()
		results, err := e.inItsLab(t.Context(), bed, subjects, 1)
		bed.Forget()
		if err != nil || len(results) != len(subjects) {
			t.Fatalf("%d results, want %d: %v", len(results), len(subjects), err)
		}
		for _, r := range results {
			if r.Verdict != api.Inconclusive {
				t.Errorf("%s: %q, though nothing was injected: %s", r.Name(), r.Verdict, r.Why.EN)
			}
		}
	})
}
