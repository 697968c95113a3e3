package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
	"oversell/trial"
)

// incidentsCommand repeats all incidents, or those with the ids: make incidents.
func incidentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "incidents [ID...]",
		Short: "Repeat the bug reports of " + trial.IncidentList + ", and compare with what they say",
		RunE: func(cmd *cobra.Command, ids []string) error {
			chosen, err := trial.Incidents(ids)
			if err != nil {
				return err
			}
			lab, err := startLab(cmd.Context(), func(cfg *rig.Config) { cfg.Replicas, cfg.Nginx = 0, false })
			if err != nil {
				return err
			}
			record, wrong, err := trial.Repeat(cmd.Context(), lab.Addresses(), chosen, cmd.OutOrStdout())
			err = errors.Join(err, lab.Close())
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				err = record.Keep()
			}
			if err == nil && wrong > 0 {
				err = fmt.Errorf("%d trials did not find what the list says", wrong)
			}
			return err
		},
	}
}
