package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
	"oversell/lab/stepper"
	"oversell/locks/catalog"
)

func stepsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "steps [strategy...]", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, errOut := cmd.Context(), cmd.ErrOrStderr()
			started, err := startLab(ctx, false, errOut, func(cfg *rig.Config) {
				cfg.Log, cfg.Nginx, cfg.Replicas = nil, false, 2
				cfg.ReplicaArgs = []string{"--lease", "10m"}
			})
			if err != nil {
				return err
			}
			return errors.Join(recordSteps(ctx, started.Addresses(), args, cmd.OutOrStdout(), errOut), started.Close())
		},
	}
}

func recordSteps(ctx context.Context, addrs rig.Addresses, ids []string, out, errOut io.Writer) error {
	if len(ids) == 0 {
		for _, c := range catalog.Cards() {
			ids = append(ids, c.ID)
		}
	}
	all := map[string]stepper.Graph{}
	for _, id := range ids {
		lab, err := stepper.Open(addrs, id)
		if err != nil {
			return err
		}
		begun, rounds := time.Now(), 0
		g, missing, err := lab.Record(ctx, func() { rounds++ })
		if err != nil {
			return err
		}
		all[id] = g
		fmt.Fprintf(errOut, "%s: %d states, %d rounds, %d missing, %v\n", id, len(g.Nodes), rounds, missing, time.Since(begun))
	}
	return json.NewEncoder(out).Encode(all)
}
