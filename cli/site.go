package cli

import (
	"fmt"
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
			sizes, err := dash.WriteSite(args[0], service)
			if err != nil {
				return err
			}
			sum := 0
			for _, size := range sizes {
				sum += size
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: %d files, %.1f MB\n", filepath.Join(args[0], "index.html"), len(sizes), float64(sum)/1e6)
			return nil
		},
	}
}
