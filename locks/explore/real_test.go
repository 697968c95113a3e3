package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/catalog"
)

// trialsOnServers returns the searches whose trails can run on real servers.
func trialsOnServers() (all []Trial) {
	for _, card := range catalog.Cards() {
		if RunsOn(card.ID) == nil {
			all = append(all, Trials(card)...)
		}
	}
	return all
}

// TestReplayOn repeats trails on real servers: the shortest one that loses an update of a few searches,
// and random ones. With OVERSELL_TRAILS, it repeats a hundred, and at least 90 must have the same outcome.
func TestReplayOn(t *testing.T) {
	const tick = 20 * time.Millisecond
	a := rigtest.Start(t, rig.Config{Redis: RedisServers, Zookeeper: true, ZookeeperTick: tick}).Addresses()
	on := Servers{Redis: a.Redis, ZooKeeper: a.Zookeeper[0], MySQL: migrated(t)}
	trails, least := fewTrails(t), 1.0
	if os.Getenv("OVERSELL_TRAILS") != "" {
		trails, least = hundredTrails(t), 0.9
	}
	same, lost := 0, 0
	for _, x := range trails {
		problem := ""
		// A machine that stalls for longer than a lease lets the schedule take another way.
		for range 3 {
			_, memory, really, err := ReplayOn(t.Context(), x.trial, x.trail, on)
			if problem = difference(memory, really, err); problem == "" {
				if really.Oversold() {
					lost++
				}
				break
			}
		}
		if problem == "" {
			same++
			continue
		}
		t.Logf("%s, %v: %v: %s", x.trial.Strategy, x.trial.Bounds, x.trail, problem)
	}
	t.Logf("%d of %d trails have the same outcome on real servers; %d of them lose an update", same, len(trails), lost)
	if float64(same) < least*float64(len(trails)) || lost == 0 {
		t.Errorf("only %d of %d trails have the same outcome on real servers; %d of them lose an update", same, len(trails), lost)
	}
}

func difference(memory, really Outcome, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case memory.String() != really.String():
		return fmt.Sprintf("%s; on real servers: %s", memory, really)
	}
	return ""
}

type trialTrail struct {
	trial Trial
	trail []string
}

func fewTrails(t *testing.T) (all []trialTrail) {
	t.Helper()
	for _, trial := range []Trial{
		{Strategy: "redis-lua", Bounds: Bounds{Clients: 2, Pauses: 1}},
		{Strategy: "redis", Bounds: Bounds{Clients: 2, Failovers: 1}},
		{Strategy: "zk-ephemeral", Bounds: Bounds{Clients: 2, Expiries: 1}},
	} {
		all = append(all, trialTrail{trial, tokens(complete(t, trial.Strategy, trial.Bounds, false).Shortest)})
	}
	return append(all, trialTrail{all[0].trial, randomTrail(t, all[0].trial, 1)})
}

// hundredTrails takes the shortest trail of each search that finds harm within 5 s, and random trails if
// these are too few.
func hundredTrails(t *testing.T) (all []trialTrail) {
	t.Helper()
	trials := trialsOnServers()
	for _, trial := range trials {
		if found := within(t, trial, 5*time.Second); found.Shortest != nil {
			all = append(all, trialTrail{trial, tokens(found.Shortest)})
		}
	}
	t.Logf("%d shortest trails", len(all))
	for seed := uint64(0); len(all) < 100; seed++ {
		trial := trials[rand.New(rand.NewPCG(seed, 2)).IntN(len(trials))] //nolint:gosec // no secret
		all = append(all, trialTrail{trial, randomTrail(t, trial, seed)})
	}
	return all[:100]
}

func tokens(steps []Step) (trail []string) {
	for _, s := range steps {
		trail = append(trail, s.Token)
	}
	return trail
}

// randomTrail draws a schedule.
func randomTrail(t *testing.T, trial Trial, seed uint64) (trail []string) {
	t.Helper()
	r, err := newRunner(trial)
	if err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	_, _, err = r.run(func(moves []move) int {
		i := draw.IntN(len(moves))
		trail = append(trail, moves[i].token)
		return i
	})
	if err != nil {
		t.Fatal(err)
	}
	return trail
}

// within searches for a time.
func within(t *testing.T, trial Trial, d time.Duration) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r, err := Search(ctx, trial, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
