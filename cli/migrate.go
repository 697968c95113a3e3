package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/migrations"
	"oversell/stock"
)

func migrateCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:   "migrate",
		Short: "Create or update the tables of a database, which a replica also does itself",
	}, func(s *settings, f *pflag.FlagSet) {
		f.StringVar(&s.MySQL, "mysql", s.MySQL, "user:password@tcp(host:port)/database (MYSQL_DSN)")
	}, migrate)
}

func migrate(c *cobra.Command, s *settings) error {
	dsn, err := s.mysqlDSN(s.MySQL)
	if err != nil {
		return &exit{2, err}
	}
	db, err := stock.Open(dsn, 2)
	if err != nil {
		return &exit{2, err}
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	if err := migrations.Up(c.Context(), pool); err != nil {
		return explain("mysql", err)
	}
	fmt.Fprintln(c.OutOrStdout(), "schema is up to date")
	return nil
}
