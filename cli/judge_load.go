package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/report"
	"oversell/lab/rig"
	"oversell/lab/terminal"
	"oversell/locks/adapter"
)

const (
	// loadHazard is the name of the load in --hazard.
	loadHazard = "load"
	// loadClients is the number of clients of the load.
	loadClients = 100
	// yardstick is the strategy that gets the same load in the same lab: a number of requests per
	// second says nothing about a lock without one to compare it with.
	yardstick = "redis"
)

// withoutLoad removes the load from the hazards that the user selected, and reports whether the
// load is to run: without a selection, everything runs.
func withoutLoad(hazards []string) (others []string, run bool) {
	others = slices.DeleteFunc(slices.Clone(hazards), func(h string) bool { return h == loadHazard })
	return others, len(hazards) == 0 || len(others) < len(hazards)
}

// underLoad sends the load to the lock, and then to the yardstick.
func (v *judgement) underLoad(ctx context.Context, lab *rig.Rig, text io.Writer) error {
	at := lab.Addresses()
	_, _ = fmt.Fprintf(text, "\nThe load: %d clients on %d replicas for 5 s, and the same on the strategy %s.\n", loadClients, len(at.Replicas), yardstick)
	trials, err := comparison.Run(ctx, comparison.Plan{
		Target: at.Target, Token: at.Token, Strategies: []string{adapter.ID, yardstick}, Sweep: []int{loadClients},
		Clients: loadClients, Loops: 1, Wait: 10 * time.Second, Seed: v.flags.plan.Seed,
		Machine: report.ThisMachine(ctx), Versions: v.versions,
	}, unwatched{})
	for _, t := range trials {
		v.load = append(v.load, t.Result)
	}
	if err != nil || len(v.load) == 0 {
		return err
	}
	lesson := report.Lesson{Names: len(adapter.ID), Screen: terminal.Of(text), Lang: language()}
	if err := lesson.Write(text, v.load[0]); err != nil {
		return err
	}
	return report.Table(text, v.load, terminal.Of(text))
}

// loadFailed reports whether the load contradicts the claim that no update is lost.
func (v *judgement) loadFailed() bool {
	return len(v.load) > 0 && v.load[0].Safe && v.load[0].Verdict != api.Holds
}

// loadSentence describes the load, with a ratio to the yardstick.
func loadSentence(results []report.Result) string {
	if len(results) == 0 {
		return ""
	}
	lock := results[0]
	text := fmt.Sprintf("%d clients: %s; %.0f requests a second, 99%% within %.0f ms", lock.Clients, report.Headline(lock).EN, lock.ThroughputPerS, lock.P99MS)
	if len(results) > 1 && results[1].ThroughputPerS > 0 {
		text += fmt.Sprintf("; %.2f of the requests of %s in the same lab", lock.ThroughputPerS/results[1].ThroughputPerS, yardstick)
	}
	return text
}

// unwatched ignores the progress of a load, which takes only seconds.
type unwatched struct{}

func (unwatched) Begin(string, int, int) {}

func (unwatched) Progress(load.Progress) {}

func (unwatched) End(report.Result) {}
