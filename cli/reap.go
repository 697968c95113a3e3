package cli

import (
	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

// reapCommand is a process that the lab starts to clean up after the lab's end; see package rig.
func reapCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "reap DIR",
		Short:  "Clean up after a lab, which starts this command",
		Args:   between(1, 1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return rig.Reap(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
