package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/comparison"
	"oversell/lab/rig"
	"oversell/lab/stepper"
	"oversell/locks/catalog"
)

// stepsCommand records the steps for make site: make steps.
func stepsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "steps [strategy...]",
		Short: "Record every order of the steps of two clients in " + recordedSteps,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := comparison.Choose(catalog.Cards(), args, false); err != nil {
				return err
			}
			started, err := startLab(cmd.Context(), func(cfg *rig.Config) {
				cfg.Nginx, cfg.Replicas = false, 2
				cfg.ReplicaArgs = []string{"--lease", "10m"} // no lease must end during a round
			})
			if err != nil {
				return err
			}
			return errors.Join(recordSteps(cmd.Context(), started.Addresses(), args, cmd.ErrOrStderr()), started.Close())
		},
	}
}

// recordSteps records these strategies, or all. It keeps the recordings of other strategies.
func recordSteps(ctx context.Context, addrs rig.Addresses, ids []string, progress io.Writer) error {
	all, err := readSteps()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	recorded := map[string]stepper.Graph{} // without strategies that no longer exist
	cards := catalog.Cards()
	for _, c := range cards {
		if old, ok := all[c.ID]; ok {
			recorded[c.ID] = old
		}
	}
	for _, c := range cards {
		if len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		lab, err := stepper.Open(addrs, c.ID)
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
		_, _ = fmt.Fprintf(progress, "%s: %d states in %d rounds, %v\n", c.ID, len(g.Nodes), rounds, time.Since(begun).Round(time.Second))
	}
	return nil
}
