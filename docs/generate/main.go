// Command generate writes the generated parts of the documents, and the recordings from which it writes them. Only
// developers need it: make docs and other targets run it in the root folder of the checkout.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

// program is what make build has built. It runs in the labs of this program, and judges the libraries.
const program = "bin/oversell"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx) // it has printed the error
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:          "generate",
		Short:        "Write the generated parts of the documents in this folder again",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(*cobra.Command, []string) error { return writeParts() },
	}
	for _, c := range []struct {
		use, short string
		record     func(ctx context.Context, from string) error
	}{
		{"claims FILE", "Add the results of FILE, from break --json, to " + recordedMatrix, recordClaims},
		{"runs FOLDER", "Copy one run for each verdict from FOLDER, of break --keep, to " + recordedRuns, recordRuns},
		{"searches FILE", "Add the results of FILE, from explore --all --json, to " + recordedSearches, recordSearches},
		{"databases FOLDER", "Write the results in FOLDER, of make databases, to " + recordedDatabases, recordDatabases},
	} {
		root.AddCommand(&cobra.Command{
			Use: c.use, Short: c.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := c.record(cmd.Context(), args[0]); err != nil {
					return err
				}
				return writeParts()
			},
		})
	}
	root.AddCommand(librariesCommand(), incidentsCommand(), stepsCommand(), courseCommand(), aloneCommand())
	root.AddCommand(&cobra.Command{
		Use: "pages FOLDER", Short: "Write a page for each library, with its timelines, to FOLDER", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return writeLibraryPages(args[0]) },
	}, &cobra.Command{
		Use: "reap FOLDER", Short: "Clean up after a lab, which starts this command", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return rig.Reap(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	})
	return root
}

// startLab starts a lab on free ports. change adapts its settings.
func startLab(ctx context.Context, change func(*rig.Config)) (*rig.Rig, error) {
	binary, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	cfg := rig.FullLab(binary, strings.ToLower(rand.Text()[:12]))
	cfg.Ports = rig.Ports{}
	cfg.OnExit = func(e rig.Exit) {
		_, _ = fmt.Fprintf(os.Stderr, "%s died (%s). Its log ends with:\n%s\n", e.Name, e.Status, e.Tail)
	}
	change(&cfg)
	return rig.Start(ctx, cfg)
}
