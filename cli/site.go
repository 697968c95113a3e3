package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"oversell/dash"
	"oversell/docs"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/stepper"
	"oversell/locks/catalog"
)

func siteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "site FOLDER",
		Short: "Write pages that need no servers: recorded steps, cards with their code, the fault matrix",
		Long: `Writes a folder of pages that open from a file, for a class without servers. They send no
requests. FOLDER/index.html is in English, FOLDER/zh/index.html in Chinese. They show what this
program was built with, from docs/recorded and docs/matrix.json; ` + "`make steps`" + ` and
` + "`make timelines`" + ` record these again.`,
		Example: `  oversell site results/site`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("site: name one folder to write to")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			site, err := recordedSite()
			if err != nil {
				return fmt.Errorf("site: %w", err)
			}
			if err := site.Write(args[0]); err != nil {
				return err
			}
			files, size, err := sizeOf(args[0])
			if err != nil {
				return fmt.Errorf("site: %w", err)
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: %d files, %.1f MB\n", filepath.Join(args[0], "index.html"), files, float64(size)/1e6)
			return nil
		},
	}
}

// recordedSite returns the site of the recordings in package docs.
func recordedSite() (site dash.Site, err error) {
	steps, errSteps := stepper.Recordings(docs.Steps)
	runs, errRuns := experiment.RecordedRuns(docs.Runs)
	site.Runs = runs
	site.Matrix, site.About, err = matrix.ReadMatrix(bytes.NewReader(docs.Matrix))
	databases, errDatabases := matrix.ReadDatabases(bytes.NewReader(docs.Databases))
	site.Databases = databases
	if err := errors.Join(err, errSteps, errRuns, errDatabases); err != nil {
		return site, err
	}
	for _, card := range catalog.Cards() {
		code, err := catalog.Source(card)
		if err != nil {
			return site, err
		}
		site.Strategies = append(site.Strategies, dash.SiteStrategy{Card: card, Code: code, Steps: steps[card.ID]})
	}
	for _, p := range catalog.PrimitiveCards() {
		if p.Code, err = catalog.PrimitiveSource(p); err != nil {
			return site, err
		}
		site.Primitives = append(site.Primitives, p)
	}
	return site, nil
}

func sizeOf(folder string) (files int, size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files++
		size += info.Size()
		return nil
	})
	return files, size, err
}
