package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"oversell/lab/comparison"
	"oversell/lab/rig"
	"oversell/lab/stepper"
	"oversell/locks/catalog"
)

// recordSteps records the steps of these strategies, or of all, for make site: make steps. It keeps the recordings of
// other strategies.
func recordSteps(ctx context.Context, ids []string) (err error) {
	cards := catalog.Cards()
	chosen, err := comparison.Choose(cards, ids, len(ids) == 0)
	if err != nil {
		return err
	}
	started, err := startLab(ctx, func(cfg *rig.Config) {
		cfg.Nginx, cfg.Replicas = false, 2
		cfg.ReplicaArgs = []string{"--lease", "10m"} // no lease must end during a round
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, started.Close()) }()
	all, err := readRecorded(recordedSteps, stepper.Recordings)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	recorded := map[string]stepper.Graph{} // without strategies that no longer exist
	for _, c := range cards {
		if old, ok := all[c.ID]; ok {
			recorded[c.ID] = old
		}
	}
	for _, c := range chosen {
		lab, err := stepper.Open(started, c.ID)
		if err != nil {
			return err
		}
		begun, rounds := time.Now(), 0
		g, err := lab.Record(ctx, func() { rounds++ })
		if err != nil {
			return err
		}
		recorded[c.ID] = g
		if err := writeRecorded(recordedSteps, recorded); err != nil { // after each, for an interruption
			return err
		}
		_, _ = fmt.Fprintf(os.Stderr, "%s: %d states in %d rounds, %v\n", c.ID, len(g.Nodes), rounds, time.Since(begun).Round(time.Second))
	}
	return nil
}
