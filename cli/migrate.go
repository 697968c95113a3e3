package cli

import (
	"fmt"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"oversell/migrations"
	"oversell/stock"
)

func migrateCommand() *cobra.Command {
	var s settings
	parsed := env.Parse(&s)
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Create or update the tables of a database, which a replica also does itself",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if parsed != nil {
				return usage("environment: %w", parsed)
			}
			db, err := stock.Open(s.MySQL, 2)
			if err != nil {
				return &exit{2, err}
			}
			pool, err := db.DB()
			if err != nil {
				return err
			}
			defer func() { _ = pool.Close() }()
			if err := migrations.Up(c.Context(), pool); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "schema is up to date")
			return nil
		},
	}
	c.Flags().StringVar(&s.MySQL, "mysql", s.MySQL, "user:password@tcp(host:port)/database (MYSQL_DSN)")
	return c
}
