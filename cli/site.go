package cli

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"oversell/dash"
	"oversell/handlers"
	"oversell/locks/catalog"
)

func siteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "site FOLDER",
		Short: "Write pages that need no servers: recorded steps, cards with their code, the fault matrix",
		Long: `Writes a folder of pages that open from a file, for a class without servers. They send no
requests. FOLDER/index.html is in English, FOLDER/zh/index.html in Chinese. The recordings are part of
the program. ` + "`make steps`" + ` and ` + "`make timelines`" + ` record them again.`,
		Example: `  oversell site results/site`,
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			service := handlers.New(handlers.Config{
				Strategies: catalog.Strategies(catalog.Backends{}), Source: catalog.Source,
				PrimitiveCards: catalog.PrimitiveCards(), PrimitiveSource: catalog.PrimitiveSource,
			})
			if err := dash.WriteSite(args[0], service); err != nil {
				return err
			}
			files, size, err := sizeOf(args[0])
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: %d files, %.1f MB\n", filepath.Join(args[0], "index.html"), files, float64(size)/1e6)
			return nil
		},
	}
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
