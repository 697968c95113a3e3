package experiment

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	// The experiments mostly wait, so two at a time would be too few on two processors.
	_ = flag.Set("test.parallel", "4") // of a valid name
	rigtest.MainWith(m, player.Config("", "token"), func(r *rig.Rig) { servers = r })
}

func open(t *testing.T) *player.Testbed {
	t.Helper()
	return openOn(t, servers)
}

func openOn(t *testing.T, lab *rig.Rig) *player.Testbed {
	t.Helper()
	bed, err := player.Open(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bed.Close)
	return bed
}

// testbeds returns a testbed on servers, and two on labs of their own.
func testbeds(t *testing.T) chan *player.Testbed {
	t.Helper()
	beds := make(chan *player.Testbed, 3)
	beds <- open(t)
	for range cap(beds) - 1 {
		beds <- openOn(t, rigtest.Start(t, player.Config(servers.Config().Binary, "token")))
	}
	return beds
}

// silent is a Watcher that does nothing.
type silent struct{}

func (silent) Begin(Experiment, int, int, int)         {}
func (silent) End(Experiment, []Result, time.Duration) {}
func (silent) LeftOut(Experiment, error)               {}

// verdicts has, for each hazard, locks that it breaks and locks that survive it. It does not have the hazards that
// apply only to a lock on trial: oversell grade injects these.
var verdicts = map[api.Hazard]map[string]api.Verdict{
	"race":           {"none": api.Broken, "mutex": api.Safe},
	"replica-race":   {"none": api.Broken, "mutex": api.Broken, "for-update": api.Safe, "version": api.Safe, "db-row": api.Safe, "redis": api.Safe, "redlock": api.Safe, "zk": api.Safe},
	"early-release":  {"mutex-in-tx": api.Broken, "for-update": api.Safe},
	"cas-storm":      {"version": api.Wasteful, "redis-stock": api.Safe},
	"deadlock":       {"share-mode": api.Wasteful, "zk-multi": api.Safe, "redis-multi-servers": api.Safe},
	"crash":          {"redis-setnx": api.Stalled, "redis-setnx-expire": api.Stalled, "redis": api.Safe, "zk": api.Safe, "for-update": api.Safe},
	"host-death":     {"get-lock": api.Stalled, "for-update": api.Stalled, "share-mode": api.Stalled, "atomic": api.Safe, "db-row": api.Safe, "redis": api.Safe, "zk": api.Safe, "etcd": api.Safe},
	"overrun":        {"redis-lua": api.Broken, "redis-watchdog": api.Safe},
	"foreign-unlock": {"redis-expire": api.Broken, "redis-lua": api.Safe},
	"pause":          {"redis": api.Broken, "redis --fenced": api.Safe, "zk": api.Broken, "zk --fenced": api.Safe, "for-update": api.Safe},
	"pause-at-read": {
		"redis": api.Broken, "redis --fenced": api.Safe, "redlock --fenced": api.Safe, "db-row --fenced": api.Safe, "zk --fenced": api.Safe,
		"etcd --fenced": api.Safe, "cohort-redis --fenced": api.Safe, "cohort-zk --fenced": api.Safe, "version": api.Safe,
	},
	"failover":             {"redis": api.Broken, "redis --fenced": api.Safe, "redis-watch": api.Broken, "redis-stock": api.Broken},
	"failover-sentinel":    {"redis": api.Broken, "redis --fenced": api.Safe},
	"failover-cluster":     {"redis": api.Broken, "redis --fenced": api.Safe},
	"split-brain":          {"redis": api.Broken, "redis --fenced": api.Safe},
	"min-replicas":         {"redis": api.Safe},
	"split-renewal":        {"redis": api.Broken, "redis --fenced": api.Safe},
	"min-replicas-renewal": {"redis-unrecovered": api.Broken, "redis": api.Safe},
	"quorum-loss":          {"redis": api.Safe},
	"resharding":           {"redis": api.Safe},
	"minority-loss":        {"redis-multi-servers": api.Stalled, "redlock": api.Safe, "zk": api.Safe},
	"majority-loss":        {"redlock": api.Safe, "zk": api.Safe},
	"clock-jump":           {"redlock": api.Broken, "redlock --fenced": api.Safe, "zk": api.Safe},
	"session-expiry":       {"zk": api.Safe, "etcd": api.Safe},
	"dead-waiter":          {"zk-watch-naive": api.Broken, "zk": api.Safe},
	"holder-reset":         {"redis": api.Safe, "redlock": api.Safe, "zk": api.Safe, "etcd": api.Safe, "db-row": api.Safe, "get-lock": api.Safe},
	"cutoff":               {"redis-lua": api.Broken, "redis": api.Safe, "zk": api.Safe},
	"lost-reply":           {"redis-expire": api.Stalled, "redis-lua": api.Safe, "zk": api.Safe},
	"bare-majority":        {"redlock": api.Broken, "redlock --fenced": api.Safe, "cohort-redlock": api.Broken, "cohort-redlock --fenced": api.Safe},
	"operator": {
		"redis-lua": api.Broken, "redis": api.Safe, "redlock": api.Safe, "zk": api.Safe, "etcd": api.Safe,
		"db-row-naive": api.Broken, "db-row": api.Safe, "get-lock": api.Safe, "for-update": api.Safe,
	},
	"operator-at-write": {
		"redis": api.Broken, "redis --fenced": api.Safe, "zk": api.Broken, "zk --fenced": api.Safe, "etcd": api.Broken, "etcd --fenced": api.Safe,
		"db-row": api.Broken, "db-row --fenced": api.Safe, "get-lock": api.Safe, "for-update": api.Safe,
	},
	"starved":        {"redis-lua": api.Broken, "redis": api.Safe, "zk": api.Safe, "etcd": api.Safe, "db-row": api.Safe},
	"renewal-reply":  {"redis-unrecovered": api.Broken, "redis": api.Safe, "redlock": api.Safe, "etcd": api.Safe, "db-row": api.Safe, "zk": api.Aborted},
	"waiter-session": {"zk-node-zero": api.Broken, "zk": api.Safe, "etcd": api.Safe},
	"nesting":        {"redis-lua": api.Stalled, "redis": api.Safe},
	"polling":        {"redlock": api.Wasteful, "redis": api.Safe},
	"herd":           {"zk-ephemeral-watch": api.Wasteful, "zk": api.Safe},
	"write-behind":   {"redis-watch": api.Broken, "redis-stock": api.Safe},
	"restart":        {"for-update": api.Safe, "redis": api.Safe, "zk": api.Safe},
	"database-down":  {"none": api.Safe, "for-update": api.Safe, "redis": api.Safe, "redis-stock": api.Safe, "db-row-naive": api.Stalled},

	// Galera is safe with a lock outside the database. Two masters with a lag are unsafe even with such a
	// lock: the next holder still reads an old row. With a follower, a strategy is safe only if it reads in the
	// transaction that writes, or checks a version.
	"galera":      {"for-update": api.Wasteful, "redis": api.Safe},
	"two-masters": {"for-update": api.Broken, "redis": api.Broken},
	"stale-read":  {"for-update": api.Safe, "version": api.Safe, "redis": api.Broken, "db-row-fair": api.Broken},
}

// TestEveryHazard injects each hazard once, into the runs of the locks in verdicts.
func TestEveryHazard(t *testing.T) {
	t.Parallel()
	beds := testbeds(t)
	bed := <-beds
	cards := bed.Cards
	beds <- bed
	pairs := map[api.Hazard]rig.Database{"galera": rig.Galera, "two-masters": rig.TwoMasters, "stale-read": rig.DelayedReads}
	for _, e := range All() {
		want, ok := verdicts[e.Hazard]
		if !ok && slices.ContainsFunc(cards, e.AppliesTo) {
			t.Errorf("no verdicts for %s", e.Hazard)
		}
		if len(want) == 0 {
			continue
		}
		t.Run(string(e.Hazard), func(t *testing.T) {
			t.Parallel()
			if database, ok := pairs[e.Hazard]; ok {
				rigtest.NeedsPair(t, database)
			}
			bed := <-beds
			defer func() { beds <- bed }()
			subjects := make([]player.Subject, 0, len(want))
			for name := range want {
				id, fenced := strings.CutSuffix(name, " --fenced")
				i := slices.IndexFunc(bed.Cards, func(c api.Card) bool { return c.ID == id })
				if i < 0 || !e.AppliesTo(bed.Cards[i]) {
					t.Fatalf("%s does not apply to %s", e.Hazard, name)
				}
				subjects = append(subjects, player.Subject{Card: bed.Cards[i], Fenced: fenced})
			}
			results, err := e.inItsLab(t.Context(), bed, subjects, 1)
			bed.Forget()
			if err != nil || len(results) != len(want) {
				t.Fatalf("%d results, want %d: %v", len(results), len(want), err)
			}
			for _, result := range results {
				if result.Verdict != want[result.Name()] {
					t.Errorf("%s: %q, want %q: %s", result.Name(), result.Verdict, want[result.Name()], result.Why)
				}
				if result.Why.ZH == "" || result.Why.ZH == result.Why.EN {
					t.Errorf("%s: the explanation %q is not in Chinese: %q", result.Name(), result.Why.EN, result.Why.ZH)
				}
				if result.contradicts() || result.Verdict == api.Inconclusive {
					t.Errorf("%s: the card says %q, the run %q: %s", result.Name(), result.Claim, result.Verdict, result.Why)
				}
				if lease := result.Recording.Lease; e.lease > 0 && lease > 0 && lease != e.lease {
					t.Errorf("%s: the recording has a lease of %v, and the lab one of %v", result.Name(), lease, e.lease)
				}
				for _, s := range result.Recording.Spans {
					since := nextGrant(result.Recording.Events, "", s.From)
					if e.Hazard == "crash" && result.Verdict == api.Safe && since > result.NextGrantMS+1000 {
						t.Errorf("%s: the recording has %.0f ms from the kill to the next grant, and there were %.0f", result.Name(), since, result.NextGrantMS)
					}
				}
				if pairs[e.Hazard] != "" && !strings.Contains(result.MySQL, "MariaDB") {
					t.Errorf("%s ran on %q, and MySQL has no such pair", result.Name(), result.MySQL)
				}
			}
		})
	}
}

// TestInterrupted cancels experiments in the middle of their faults. The lab must be healthy
// afterwards, and the next experiment must give the right verdict.
func TestInterrupted(t *testing.T) {
	bed := open(t)
	hazards := []api.Hazard{"pause", "failover"}
	if rigtest.IsNightly() {
		hazards = append(hazards, "cutoff", "dead-waiter")
	}
	for _, hazard := range hazards {
		ctx, cancel := context.WithCancel(t.Context())
		holds := make(chan bool, 1000)
		for n := range bed.Rig.Addresses().Replicas {
			go func() {
				_ = bed.Replica(n).Follow(ctx, func(_ string, data []byte) {
					if step := string(data); strings.Contains(step, `"strategy":"redis"`) && (strings.Contains(step, `"step":"read"`) || strings.Contains(step, `"step":"writing"`)) {
						holds <- true
					}
				})
			}()
		}
		done := make(chan error, 1)
		go func() {
			done <- Perform(ctx, bed, Selection{Hazards: []api.Hazard{hazard}, Strategies: []string{"redis"}}, &ResultStore{}, silent{})
		}()
		select {
		case <-holds:
		case <-time.After(time.Minute):
			t.Error("no request holds the lock")
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", hazard, err, context.Canceled)
		}
		bed.Forget()
	}
	store := &ResultStore{}
	if err := Perform(t.Context(), bed, Selection{Hazards: []api.Hazard{"replica-race"}, Strategies: []string{"redis", "mutex"}}, store, silent{}); err != nil {
		t.Fatal(err)
	}
	for _, result := range store.Results() {
		if result.contradicts() || result.Verdict == api.Inconclusive {
			t.Errorf("after the interruptions: %s is %s: %s", result.Strategy, result.Verdict, result.Why)
		}
	}
}

// TestPlans runs impossible plans. They must be rejected before a fault is injected.
func TestPlans(t *testing.T) {
	bed := open(t)
	for _, p := range []Selection{
		{Hazards: []api.Hazard{"earthquake"}},
		{Hazards: []api.Hazard{"race"}, Strategies: []string{"nonsense"}},
		{Hazards: []api.Hazard{"pause"}, Strategies: []string{"none"}, Fenced: true},
		{Hazards: []api.Hazard{"nesting"}, Strategies: []string{"version"}},
	} {
		store := &ResultStore{}
		if err := Perform(t.Context(), bed, p, store, silent{}); !errors.Is(err, load.ErrPlan) || len(store.Results()) > 0 {
			t.Errorf("%+v: %v, want %v", p, err, load.ErrPlan)
		}
	}
}
