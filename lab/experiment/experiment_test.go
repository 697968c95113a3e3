package experiment

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
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

// silent is a Watcher that does nothing.
type silent struct{}

func (silent) Begin(Experiment, int, int, int)         {}
func (silent) End(Experiment, []Result, time.Duration) {}
func (silent) LeftOut(Experiment, error)               {}

// TestDecisiveResults runs hazards on strategies that they break, or that withstand them.
func TestDecisiveResults(t *testing.T) {
	t.Parallel() // with tests in labs of their own
	bed := open(t)
	for _, test := range []struct {
		hazard string
		want   map[string]Verdict
	}{
		{"race", map[string]Verdict{"none": Broken, "mutex": Safe}},
		{"replica-race", map[string]Verdict{"mutex": Broken, "for-update": Safe, "version": Safe, "redis": Safe}},
		{"early-release", map[string]Verdict{"mutex-in-tx": Broken, "for-update": Safe}},
		{"crash", map[string]Verdict{"redis-setnx": Stalled, "redis-setnx-expire": Stalled, "redis": Safe, "zk": Safe, "for-update": Safe}},
		{"overrun", map[string]Verdict{"redis-lua": Broken, "redis-watchdog": Safe}},
		{"pause-at-read", map[string]Verdict{
			"redis": Broken, "redis --fenced": Safe, "redlock --fenced": Safe, "db-row --fenced": Safe, "zk --fenced": Safe,
			"etcd --fenced": Safe, "cohort-redis --fenced": Safe, "cohort-zk --fenced": Safe, "version": Safe,
		}},
		{"failover", map[string]Verdict{"redis": Broken, "redis --fenced": Safe, "redis-watch": Broken, "redis-stock": Broken}},
		{"bare-majority", map[string]Verdict{"redlock": Broken, "redlock --fenced": Safe, "cohort-redlock": Broken, "cohort-redlock --fenced": Safe}},
		{"minority-loss", map[string]Verdict{"redlock": Safe, "zk": Safe}},
		{"lost-reply", map[string]Verdict{"redis-expire": Stalled, "redis-lua": Safe, "zk": Safe}},
		{"write-behind", map[string]Verdict{"redis-watch": Broken, "redis-stock": Safe}},
		{"database-down", map[string]Verdict{"none": Safe, "for-update": Safe, "redis": Safe, "redis-stock": Safe, "db-row-naive": Stalled}},
		{"nesting", map[string]Verdict{"redis-lua": Stalled, "redis": Safe}},
		{"deadlock", map[string]Verdict{"share-mode": Wasteful, "zk-multi": Safe}},
		{"operator", map[string]Verdict{
			"redis-lua": Broken, "redis": Safe, "redlock": Safe, "zk": Safe, "etcd": Safe,
			"db-row-naive": Broken, "db-row": Safe, "get-lock": Safe, "for-update": Safe,
		}},
		{"operator-at-write", map[string]Verdict{
			"redis": Broken, "redis --fenced": Safe, "zk": Broken, "zk --fenced": Safe, "etcd": Broken, "etcd --fenced": Safe,
			"db-row": Broken, "db-row --fenced": Safe, "get-lock": Safe, "for-update": Safe,
		}},
		{"starved", map[string]Verdict{"redis-lua": Broken, "redis": Safe, "zk": Safe, "etcd": Safe, "db-row": Safe}},
		{"renewal-reply", map[string]Verdict{"redis": Safe, "redlock": Safe, "etcd": Safe, "db-row": Safe, "zk": Aborted}},
		{"waiter-session", map[string]Verdict{"zk-node-zero": Broken, "zk": Safe, "etcd": Safe}},
	} {
		t.Run(test.hazard, func(t *testing.T) {
			store, err := OpenStore(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			plain, fenced := Plan{Hazards: []string{test.hazard}, Seed: 1}, Plan{Hazards: []string{test.hazard}, Seed: 1, Fenced: true}
			for name := range test.want {
				if id, ok := strings.CutSuffix(name, " --fenced"); ok {
					fenced.Strategies = append(fenced.Strategies, id)
				} else {
					plain.Strategies = append(plain.Strategies, id)
				}
			}
			for _, plan := range []Plan{plain, fenced} {
				if len(plan.Strategies) == 0 {
					continue
				}
				if err := Run(t.Context(), bed, plan, store, silent{}); err != nil {
					t.Fatal(err)
				}
			}
			seen := map[string]Result{}
			for _, result := range store.Results() {
				seen[Subject{Card: Card{api.Card{ID: result.Strategy}}, Fenced: result.Fenced}.Name()] = result
				if result.Why.ZH == "" || result.Why.ZH == result.Why.EN {
					t.Errorf("%s: the explanation %q is not in Chinese: %q", result.Strategy, result.Why.EN, result.Why.ZH)
				}
				if !result.Agrees() {
					t.Errorf("%s: the card says %q, the run %q: %s", result.Strategy, result.Claim, result.Verdict, result.Why)
				}
			}
			for name, want := range test.want {
				if result, ok := seen[name]; !ok || result.Verdict != want {
					t.Errorf("%s: %q, want %q: %s", name, result.Verdict, want, result.Why)
				}
			}
		})
	}
}

// TestEveryLock runs basic hazards on every lock, also where the card claims nothing about them. A
// cross-process lock must survive each hazard, unless its card claims that the hazard breaks it.
func TestEveryLock(t *testing.T) {
	t.Parallel() // the experiments mostly wait
	bed := openOn(t, rigtest.Start(t, Config(servers.Config().Binary, "token")))
	for _, test := range []struct {
		hazard  string
		failure Verdict
	}{
		{"race", Broken},
		{"replica-race", Broken},
		{"crash", Stalled},
		{"foreign-unlock", Broken},
		{"dead-waiter", Broken},
		{"pause", Broken},
		{"polling", Wasteful},
	} {
		hazard, disagree := test.hazard, []string(nil)
		// A very busy machine may stop all processes for as long as a lease, so that every lock is lost.
		// So only verdicts that contradict the card with three seeds fail the test.
		for seed := int64(1); seed <= 3; seed++ {
			store := &ResultStore{}
			if err := Run(t.Context(), bed, Plan{Hazards: []string{hazard}, Strategies: disagree, Seed: seed}, store, silent{}); err != nil {
				t.Fatal(err)
			}
			disagree = nil
			broken := 0
			for _, r := range store.Results() {
				want := Safe
				card := bed.Cards()[position(bed.Cards(), r)/2]
				switch {
				case r.Claim == Breaks && card.Safe:
					want = test.failure
					broken++
				case r.Claim == Breaks && r.Agrees():
					broken++
					continue // an unsafe strategy may fail in another way
				case r.Claim == Silent && (hazard == "polling" || card.Scope != api.ScopeShared || !card.Safe):
					continue // redis-fair polls, to keep its place in the queue, and its card does not deny that
				}
				if r.Verdict != want {
					disagree = append(disagree, r.Strategy)
					t.Logf("%s, %s, seed %d: %q, want %q: %s", r.Name(), hazard, seed, r.Verdict, want, r.Why)
				}
			}
			if seed == 1 && (broken == 0 || broken == len(store.Results())) {
				t.Errorf("%s: %d of %d have failed: this test shows no difference", hazard, broken, len(store.Results()))
			}
			if disagree == nil {
				break
			}
		}
		if disagree != nil {
			t.Errorf("%s: the results of %v contradict their cards with three seeds", hazard, disagree)
		}
	}
}

// TestInterrupted cancels experiments in the middle of their faults. The lab must be healthy
// afterwards, and the next experiment must give the right verdict.
func TestInterrupted(t *testing.T) {
	bed := open(t)
	for _, hazard := range []string{"pause", "cutoff", "dead-waiter", "failover"} {
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
