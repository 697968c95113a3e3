package cli

import (
	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

// reapCommand is the process that cleans up after `oversell lab`; see package rig. Users
// have no need for it, so it is hidden.
func reapCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "reap DIR",
		Short:  "clean up after a lab (started by it)",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return rig.Reap(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
