package cli

import (
	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

// reapCommand is the process that cleans up after a lab; see package rig. The lab starts it.
func reapCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "reap DIR",
		Short:  "Clean up after a lab, which starts this command",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return rig.Reap(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
