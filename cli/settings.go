package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"oversell/lab/rig"
	"oversell/lab/suggest"
)

//go:embed settings.tmpl
var settingsText string

// settingsParts are the names of the templates in settings.tmpl.
func settingsParts() []string { return []string{"clients", "spring", "redisson", "curator", "go"} }

func settingsCommand() *cobra.Command {
	var lab string
	cmd := &cobra.Command{
		Use:   "settings [PART]",
		Short: "Print the addresses and passwords of the running lab for a program of your own",
		Long: `Prints how a program of your own connects to the servers of the running lab: the lines for the servers'
own clients and an IDE (clients), the application.yml of Spring Boot (spring), and code for Redisson, Curator
and Go (redisson, curator, go). PART prints only one of them.

The database test is for your own tables; the replicas use the database oversell. To have the servers
at their usual ports, and a password of your own, start the lab with --ports fixed and --login.`,
		Example: `  oversell settings
  oversell settings spring > src/main/resources/application.yml`,
		Args:      between(0, 1),
		ValidArgs: settingsParts(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !slices.Contains(settingsParts(), args[0]) {
				return &exit{2, &suggest.Unknown{Kind: "part", Name: args[0], Known: settingsParts()}}
			}
			addrs, err := labAddresses(lab, cmd.Root().CommandPath())
			if err == nil {
				err = writeSettings(cmd.OutOrStdout(), addrs, args...)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&lab, "lab", runningLab, labUsage)
	return cmd
}

// writeSettings writes the settings of a lab. Without parts, it writes all of them.
func writeSettings(out io.Writer, addrs rig.Addresses, parts ...string) error {
	database, err1 := mysql.ParseDSN(addrs.MySQL)
	cache, err2 := redis.ParseURL(addrs.Redis[0])
	if err1 != nil || err2 != nil {
		return errors.New("the lab's address of MySQL or Redis is wrong") // the errors contain the password
	}
	text := template.Must(template.New("").Funcs(template.FuncMap{"join": strings.Join, "port": portOf}).Parse(settingsText))
	if len(parts) == 0 {
		parts = settingsParts()
	}
	var all strings.Builder
	for _, part := range parts {
		values := map[string]any{"MySQL": database, "Redis": cache, "Lab": addrs}
		if err := text.ExecuteTemplate(&all, part, values); err != nil {
			return fmt.Errorf("settings.tmpl: %w", err)
		}
		all.WriteString("\n")
	}
	_, err := io.WriteString(out, strings.TrimSuffix(all.String(), "\n"))
	return err
}

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }
