package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestUnderChaos lets clients buy with every lock that has a fence, which it uses, and with every strategy whose card
// names none of these faults as harmful. Meanwhile it pauses, kills or restarts replicas, and kills or
// restarts backends, at random. A pause is longer than a lease. After each round of 20 s at most, the pieces taken must equal the
// pieces sold, apart from requests with an unknown outcome. OVERSELL_CHAOS is the duration of the
// test. In the middle of every second round, the stock of each strategy that survives a deleted lock
// is reset: from then on, the pieces taken are those of sales that began later, and perhaps those of sales that
// ran. OVERSELL_SEED is the logged seed of an earlier test, and repeats its draw of faults.
func TestUnderChaos(t *testing.T) {
	rigtest.Nightly(t, "TestEveryHazard of ./lab/experiment")
	long, round := 15*time.Second, 20*time.Second
	if text := os.Getenv("OVERSELL_CHAOS"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := time.Now().UnixNano()
	if text := os.Getenv("OVERSELL_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(uint64(seed), 0))
	bed := open(t)
	var total check.Conservation
	faults := map[string]int{}
	for began, rounds := time.Now(), 1; rounds == 1 || time.Since(began) < long; rounds++ {
		groups := salesUnderFaults(bed, t, draw, min(round, long), rounds%2 == 1, faults)
		for _, s := range groups {
			left, err := bed.Replica(0).Count(t.Context(), s.Card.ID, s.Product)
			if err != nil {
				t.Fatal(err)
			}
			stock := check.Stock(s.sinceReset(), plenty, left)
			total.Sold, total.Unknown, total.LostMin = total.Sold+stock.Sold, total.Unknown+stock.Unknown, total.LostMin+max(0, stock.LostMin)
			if stock.Verdict == api.Broken {
				t.Errorf("round %d, %s: %d sold, %d perhaps, %d taken from stock", rounds, s.Name(), stock.Sold, stock.Unknown, plenty-left)
			}
			if stock.Sold == 0 {
				t.Errorf("round %d, %s: nothing was sold", rounds, s.Name())
			}
			if n := history.Count(s.ops, func(op *history.Op) bool { return op.Reason == history.SoldOut }); n > 0 {
				t.Errorf("round %d, %s: %d requests were told that nothing is left, and %d are", rounds, s.Name(), n, left)
			}
		}
		t.Logf("%v: %d strategies, %d rounds, %d sold, %d perhaps, %d updates lost; %v", time.Since(began).Round(time.Second), len(groups), rounds, total.Sold, total.Unknown, total.LostMin, faults)
	}
}

// resetting is a strategy's clients, and the time of a reset of their stock.
type resetting struct {
	clients
	from, to time.Duration
}

// reset resets the stock, and repeats this until it succeeds.
func (r *resetting) reset(t *testing.T, bed *player.Testbed) {
	t.Helper()
	r.from = bed.Since()
	if err := player.Eventually(t.Context(), r.Name()+" is reset", func() bool {
		return bed.Replica(0).SetStock(t.Context(), r.Product, plenty) == nil
	}); err != nil {
		t.Error(err)
	}
	r.to = bed.Since()
}

// sinceReset returns the sales from a reset of the stock. A sale that ran then counts perhaps.
func (r *resetting) sinceReset() (ops []history.Op) {
	for _, op := range r.ops {
		if op.Outcome == history.OK && op.Call < r.to {
			op.Outcome = history.Unknown
			if op.Return < r.from {
				continue
			}
		}
		ops = append(ops, op)
	}
	return ops
}

// salesUnderFaults runs one round: on each replica, one client buys with each of these strategies.
// Until the round ends, it injects and heals one random fault after the other.
func salesUnderFaults(bed *player.Testbed, t *testing.T, draw *rand.Rand, round time.Duration, resets bool, faults map[string]int) (groups []*resetting) {
	t.Helper()
	for _, card := range bed.Cards {
		if !card.Fenced && !withstands(card) {
			continue
		}
		product, err := bed.AddProduct(t.Context(), 0, plenty)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, &resetting{clients: clients{Subject: player.Subject{Card: card, Fenced: card.Fenced, Product: product}}})
	}
	open, closing := context.WithTimeout(t.Context(), round)
	defer closing()
	var all, reset sync.WaitGroup
	for _, s := range groups {
		for n := range bed.Rig.Addresses().Replicas {
			all.Go(func() { s.buyUntilClosed(open, bed, n) })
		}
		if resets && (s.Fenced || s.Card.Claim("operator") != api.Breaks) {
			reset.Go(func() {
				_ = load.Sleep(open, round/2)
				s.reset(t, bed)
			})
		}
	}
	for open.Err() == nil {
		if err := randomFault(open, bed, draw, faults); err != nil {
			t.Error(err)
			break
		}
	}
	if err := bed.Heal(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	reset.Wait()
	// The round includes the recovery: after the faults, each strategy must sell again.
	after := bed.Since()
	for _, s := range groups {
		if err := player.Eventually(t.Context(), s.Name()+" sells again", func() bool {
			op := bed.Buy(t.Context(), 0, s.Subject, url.Values{"wait": {"5s"}})
			s.mu.Lock()
			s.ops = append(s.ops, op)
			s.mu.Unlock()
			return s.boughtAfter(after)
		}); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	return groups
}

// withstands reports whether the strategy promises to lose nothing without a fence: all its stock survives
// a restart, and nothing ends while its holder is paused.
func withstands(c api.Card) bool {
	return c.Safe && c.Stock == "" && !slices.ContainsFunc([]api.Hazard{"pause", "pause-at-read", "crash", "restart", "database-down"}, func(hazard api.Hazard) bool {
		return c.Claim(hazard) == api.Breaks
	})
}

// randomFault injects a random fault into a random server, and heals it.
func randomFault(ctx context.Context, bed *player.Testbed, draw *rand.Rand, faults map[string]int) error {
	replicas, servers := bed.Rig.Addresses().Replicas, []string{"mysql"}
	for _, s := range bed.Rig.Servers() {
		if kind := rig.Kind(s.Name()); (kind == "redis" || kind == "zookeeper" || kind == "etcd") && !strings.HasSuffix(s.Name(), "replica") {
			servers = append(servers, s.Name())
		}
	}
	target := servers[draw.IntN(len(servers))]
	onReplica := draw.IntN(2) == 0
	if onReplica {
		target = player.ReplicaName(draw.IntN(len(replicas)))
	}
	server, err := bed.Rig.Server(target)
	if err != nil {
		return err
	}
	var f fault.Fault
	rest := time.Duration(0)
	switch {
	case onReplica && draw.IntN(4) > 0:
		f, rest = fault.Stop(server), player.Lease+time.Duration(draw.IntN(1500))*time.Millisecond
	case draw.IntN(2) == 0:
		f, rest = fault.Kill(server), time.Duration(draw.IntN(1500))*time.Millisecond
	default:
		f = fault.Restart(server)
	}
	faults[f.Name+" "+rig.Kind(target)]++
	heal, err := f.Inject(context.WithoutCancel(ctx)) // an interrupted fault would stay
	if err != nil {
		return fmt.Errorf("%s %s: %w", f.Name, target, err)
	}
	time.Sleep(rest)
	if err := heal(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("after %s %s: %w", f.Name, target, err)
	}
	return nil
}
