package cli

import (
	"context"
	"errors"
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
	if _, err := migrated(c.Context(), dsn); err != nil {
		return explain("mysql", err)
	}
	fmt.Fprintln(c.OutOrStdout(), "schema is up to date")
	return nil
}

// migrated brings the tables of a database up to date, and returns the version of its server.
func migrated(ctx context.Context, dsn string) (version string, err error) {
	db, err := stock.Open(dsn, 2)
	if err != nil {
		return "", &exit{2, err}
	}
	pool, err := db.DB()
	if err != nil {
		return "", err
	}
	if err = migrations.Up(ctx, pool); err == nil {
		err = pool.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	}
	return version, errors.Join(err, pool.Close())
}
