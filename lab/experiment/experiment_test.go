package experiment

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	// The experiments mostly wait, so two at a time would be too few on two processors.
	_ = flag.Set("test.parallel", "4") // of a valid name
	rigtest.MainWith(m, Config("", "token"), func(r *rig.Rig) { servers = r })
}

func open(t *testing.T) *Testbed {
	t.Helper()
	return openOn(t, servers)
}

func openOn(t *testing.T, lab *rig.Rig) *Testbed {
	t.Helper()
	bed, err := Open(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bed.Close)
	return bed
}

// testbeds returns a testbed on servers, and two on labs of their own.
func testbeds(t *testing.T) chan *Testbed {
	t.Helper()
	beds := make(chan *Testbed, 3)
	beds <- open(t)
	for range cap(beds) - 1 {
		beds <- openOn(t, rigtest.Start(t, Config(servers.Config().Binary, "token")))
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
var verdicts = map[string]map[string]Verdict{
	"race":           {"none": Broken, "mutex": Safe},
	"replica-race":   {"none": Broken, "mutex": Broken, "for-update": Safe, "version": Safe, "db-row": Safe, "redis": Safe, "redlock": Safe, "zk": Safe},
	"early-release":  {"mutex-in-tx": Broken, "for-update": Safe},
	"cas-storm":      {"version": Wasteful, "redis-stock": Safe},
	"deadlock":       {"share-mode": Wasteful, "zk-multi": Safe},
	"crash":          {"redis-setnx": Stalled, "redis-setnx-expire": Stalled, "redis": Safe, "zk": Safe, "for-update": Safe},
	"overrun":        {"redis-lua": Broken, "redis-watchdog": Safe},
	"foreign-unlock": {"redis-expire": Broken, "redis-lua": Safe},
	"pause":          {"redis": Broken, "redis --fenced": Safe, "zk": Broken, "zk --fenced": Safe, "for-update": Safe},
	"pause-at-read": {
		"redis": Broken, "redis --fenced": Safe, "redlock --fenced": Safe, "db-row --fenced": Safe, "zk --fenced": Safe,
		"etcd --fenced": Safe, "cohort-redis --fenced": Safe, "cohort-zk --fenced": Safe, "version": Safe,
	},
	"failover":             {"redis": Broken, "redis --fenced": Safe, "redis-watch": Broken, "redis-stock": Broken},
	"failover-sentinel":    {"redis": Broken, "redis --fenced": Safe},
	"failover-cluster":     {"redis": Broken, "redis --fenced": Safe},
	"split-brain":          {"redis": Broken, "redis --fenced": Safe},
	"min-replicas":         {"redis": Safe},
	"split-renewal":        {"redis": Broken, "redis --fenced": Safe},
	"min-replicas-renewal": {"redis-unrecovered": Broken, "redis": Safe},
	"quorum-loss":          {"redis": Safe},
	"resharding":           {"redis": Safe},
	"minority-loss":        {"redis-multi-servers": Stalled, "redlock": Safe, "zk": Safe},
	"majority-loss":        {"redlock": Safe, "zk": Safe},
	"clock-jump":           {"redlock": Broken, "redlock --fenced": Safe, "zk": Safe},
	"session-expiry":       {"zk": Safe, "etcd": Safe},
	"dead-waiter":          {"zk-watch-naive": Broken, "zk": Safe},
	"cutoff":               {"redis-lua": Broken, "redis": Safe, "zk": Safe},
	"lost-reply":           {"redis-expire": Stalled, "redis-lua": Safe, "zk": Safe},
	"bare-majority":        {"redlock": Broken, "redlock --fenced": Safe, "cohort-redlock": Broken, "cohort-redlock --fenced": Safe},
	"operator": {
		"redis-lua": Broken, "redis": Safe, "redlock": Safe, "zk": Safe, "etcd": Safe,
		"db-row-naive": Broken, "db-row": Safe, "get-lock": Safe, "for-update": Safe,
	},
	"operator-at-write": {
		"redis": Broken, "redis --fenced": Safe, "zk": Broken, "zk --fenced": Safe, "etcd": Broken, "etcd --fenced": Safe,
		"db-row": Broken, "db-row --fenced": Safe, "get-lock": Safe, "for-update": Safe,
	},
	"starved":        {"redis-lua": Broken, "redis": Safe, "zk": Safe, "etcd": Safe, "db-row": Safe},
	"renewal-reply":  {"redis-unrecovered": Broken, "redis": Safe, "redlock": Safe, "etcd": Safe, "db-row": Safe, "zk": Aborted},
	"waiter-session": {"zk-node-zero": Broken, "zk": Safe, "etcd": Safe},
	"nesting":        {"redis-lua": Stalled, "redis": Safe},
	"polling":        {"redlock": Wasteful, "redis": Safe},
	"herd":           {"zk-ephemeral-watch": Wasteful, "zk": Safe},
	"write-behind":   {"redis-watch": Broken, "redis-stock": Safe},
	"percentiles":    nil, // see TestPercentiles
	"restart":        {"for-update": Safe, "redis": Safe, "zk": Safe},
	"database-down":  {"none": Safe, "for-update": Safe, "redis": Safe, "redis-stock": Safe, "db-row-naive": Stalled},

	// Galera is safe with a lock outside the database. Two masters with a lag are unsafe even with such a
	// lock: the next holder still reads an old row. With a follower, a strategy is safe only if it reads in the
	// transaction that writes, or checks a version.
	"galera":      {"for-update": Wasteful, "redis": Safe},
	"two-masters": {"for-update": Broken, "redis": Broken},
	"stale-read":  {"for-update": Safe, "version": Safe, "redis": Broken, "db-row-fair": Broken},
}

// TestEveryHazard injects each hazard once, into the runs of the locks in verdicts.
func TestEveryHazard(t *testing.T) {
	t.Parallel()
	beds := testbeds(t)
	bed := <-beds
	cards := bed.Cards()
	beds <- bed
	pairs := map[string]rig.Database{"galera": rig.Galera, "two-masters": rig.TwoMasters, "stale-read": rig.DelayedReads}
	for _, e := range All() {
		want, ok := verdicts[e.Hazard]
		if !ok && slices.ContainsFunc(cards, e.AppliesTo) {
			t.Errorf("no verdicts for %s", e.Hazard)
		}
		if len(want) == 0 {
			continue
		}
		t.Run(e.Hazard, func(t *testing.T) {
			t.Parallel()
			if database, ok := pairs[e.Hazard]; ok {
				rigtest.NeedsPair(t, database)
			}
			bed := <-beds
			defer func() { beds <- bed }()
			subjects := make([]Subject, 0, len(want))
			for name := range want {
				id, fenced := strings.CutSuffix(name, " --fenced")
				i := slices.IndexFunc(bed.cards, func(c Card) bool { return c.ID == id })
				if i < 0 || !e.AppliesTo(bed.cards[i]) {
					t.Fatalf("%s does not apply to %s", e.Hazard, name)
				}
				subjects = append(subjects, Subject{Card: bed.cards[i], Fenced: fenced})
			}
			results, err := e.carryOut(t.Context(), bed, subjects, 1)
			bed.rec.forget()
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
				if !result.Agrees() {
					t.Errorf("%s: the card says %q, the run %q: %s", result.Name(), result.Claim, result.Verdict, result.Why)
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
	hazards := []string{"pause", "failover"}
	if rigtest.IsNightly() {
		hazards = append(hazards, "cutoff", "dead-waiter")
	}
	for _, hazard := range hazards {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, bed, Plan{Hazards: []string{hazard}, Strategies: []string{"redis"}}, &ResultStore{}, silent{})
		}()
		seen := func() bool {
			for _, key := range bed.rec.keys() {
				for _, e := range bed.rec.eventsOf(key) {
					if e.At > 0 && (e.Step == "read" || e.Step == "writing") && e.Strategy == "redis" {
						return true
					}
				}
			}
			return false
		}
		if err := eventually(t.Context(), "a request holds the lock", seen); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", hazard, err, context.Canceled)
		}
		bed.rec.forget()
	}
	store := &ResultStore{}
	if err := Run(t.Context(), bed, Plan{Hazards: []string{"replica-race"}, Strategies: []string{"redis", "mutex"}}, store, silent{}); err != nil {
		t.Fatal(err)
	}
	for _, result := range store.Results() {
		if !result.Agrees() {
			t.Errorf("after the interruptions: %s is %s: %s", result.Strategy, result.Verdict, result.Why)
		}
	}
}

// TestPlans runs impossible plans. They must be rejected before a fault is injected.
func TestPlans(t *testing.T) {
	bed := open(t)
	for _, p := range []Plan{
		{Hazards: []string{"earthquake"}},
		{Hazards: []string{"race"}, Strategies: []string{"nonsense"}},
		{Hazards: []string{"pause"}, Strategies: []string{"none"}, Fenced: true},
		{Hazards: []string{"nesting"}, Strategies: []string{"version"}},
	} {
		store := &ResultStore{}
		if err := Run(t.Context(), bed, p, store, silent{}); !errors.Is(err, ErrPlan) || len(store.Results()) > 0 {
			t.Errorf("%+v: %v, want %v", p, err, ErrPlan)
		}
	}
}
