package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"oversell/dash"
	"oversell/lab/rig"
)

// labFlags are the flags of `oversell lab`.
type labFlags struct {
	json     string
	replicas int
	port     int
	token    string
}

func labCommand() *cobra.Command {
	var flags labFlags
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "bring up the whole lab on this machine, until Ctrl-C",
		Long: `Starts MySQL or MariaDB, five Redis, ZooKeeper, etcd, nginx and the replicas as child
processes on loopback, prints their addresses, and waits. Ctrl-C, or SIGTERM, ends it.
However it ends, nothing of it is left: no process, no port, no file but that of --json,
which appears in one step when all is ready.

nginx takes port 8080 and the replicas 8000, 8100, 8200 where these are free, and any
free port otherwise; the other servers always take any free port. So labs may run side
by side.`,
		Example: `  oversell lab
  oversell lab --json lab.json & until [ -f lab.json ]; do sleep 0.1; done`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runLab(cmd.Context(), flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&flags.json, "json", "", "write the addresses to `FILE` as soon as all is ready; a file of an earlier lab is removed first")
	cmd.Flags().IntVar(&flags.replicas, "replicas", 3, "number of replicas, 1 to 50")
	cmd.Flags().IntVar(&flags.port, "port", 8080, "port of nginx, if it is free")
	cmd.Flags().StringVar(&flags.token, "token", os.Getenv("LAB_TOKEN"), "the lab's token, which resets the stock (default $LAB_TOKEN, or a random one)")
	cmd.Flags().Lookup("token").DefValue = "" // not the environment's, which help would print
	return cmd
}

// runLab starts a lab, tells the addresses, and closes it when a signal comes.
func runLab(ctx context.Context, flags labFlags, out, errOut io.Writer) error {
	cfg, err := flags.config(errOut)
	if err != nil {
		return err
	}
	// Who waits for the file must not find the one of an earlier lab.
	if err := removeStale(flags.json); err != nil {
		return err
	}
	page, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("lab: page: %w", err)
	}
	defer func() { _ = page.Close() }()
	cfg.Page = page.Addr().String()
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	closePage := servePage(ctx, page, dash.Config{Lab: lab.Addresses(), Binary: cfg.Binary, OnExit: cfg.OnExit})
	if err := announce(lab, cfg, flags.json, out); err != nil {
		closePage()
		return errors.Join(err, lab.Close())
	}
	<-ctx.Done()
	_, _ = fmt.Fprintln(errOut, "closing the lab")
	closePage()
	if err := lab.Close(); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

func (f labFlags) config(errOut io.Writer) (rig.Config, error) {
	if f.replicas < 1 || f.replicas > 50 {
		return rig.Config{}, &exit{2, fmt.Errorf("lab: --replicas %d: must be 1 to 50", f.replicas)}
	}
	if f.port < 1 || f.port > 65535 {
		return rig.Config{}, &exit{2, fmt.Errorf("lab: --port %d: must be 1 to 65535", f.port)}
	}
	program, err := os.Executable()
	if err != nil {
		return rig.Config{}, fmt.Errorf("lab: %w", err)
	}
	token := f.token
	if token == "" {
		token = randomToken()
	}
	cfg := rig.FullLab(program, token)
	cfg.Replicas = f.replicas
	cfg.Ports.Nginx = f.port
	cfg.Log = errOut
	cfg.OnExit = tellExit(errOut)
	return cfg, nil
}

// tellExit says which server died though nobody stopped it.
func tellExit(errOut io.Writer) func(rig.Exit) {
	return func(e rig.Exit) {
		_, _ = fmt.Fprintf(errOut, "%s died (%s), its log ends with:\n%s\n", e.Name, e.Status, e.Tail)
	}
}

// randomToken is one that nobody guesses.
func randomToken() string { return strings.ToLower(rand.Text()[:12]) }

// announce prints the addresses and writes them to the file at path, if one was asked for.
func announce(lab *rig.Rig, cfg rig.Config, path string, out io.Writer) error {
	if path != "" {
		if err := writeAddresses(path, lab.Addresses()); err != nil {
			return err
		}
	}
	text, err := labText(lab.Addresses(), lab.Dir(), cfg.Ports)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

func removeStale(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lab: --json: %w", err)
	}
	return nil
}

// writeAddresses writes the file in one step: who sees it sees all of it. It is for the
// user alone, as it holds the token.
func writeAddresses(path string, addrs rig.Addresses) error {
	text, err := json.MarshalIndent(addrs, "", "  ")
	if err != nil {
		return fmt.Errorf("lab: --json: %w", err)
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("lab: --json: %w", err)
	}
	_, err = part.Write(append(text, '\n'))
	if err := errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("lab: --json: %w", errors.Join(err, os.Remove(part.Name())))
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return fmt.Errorf("lab: --json: %w", errors.Join(err, os.Remove(part.Name())))
	}
	return nil
}

// labText is what a lab says when it is ready: where everything is, and what to type next.
func labText(addrs rig.Addresses, logs string, wished rig.Ports) (string, error) {
	target, err := url.Parse(addrs.Target)
	if err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	var text strings.Builder
	text.WriteString("\nThe lab is ready.\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name, value string, wish int) {
		if wish > 0 && !strings.HasSuffix(value, fmt.Sprintf(":%d", wish)) {
			value += fmt.Sprintf("  (%d is in use)", wish)
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\n", name, value)
	}
	row("nginx", addrs.Target, wished.Nginx)
	for i, replica := range addrs.Replicas {
		wish := 0
		if i < len(wished.Replicas) {
			wish = wished.Replicas[i]
		}
		row(fmt.Sprintf("replica-%d", i+1), replica, wish)
	}
	row("mysql", addrs.MySQL, 0)
	for i, server := range addrs.Redis {
		row(fmt.Sprintf("redis-%d", i+1), server, 0)
	}
	row("zookeeper", strings.Join(addrs.Zookeeper, ","), 0)
	row("etcd", strings.Join(addrs.Etcd, ","), 0)
	row("token", addrs.Token, 0)
	row("logs", logs, 0)
	_ = table.Flush() // into memory

	_, _ = fmt.Fprintf(&text, `
Open in a browser:
  %[1]s/#token=%[3]s

Try, in another terminal:
  curl '%[1]s/check/lock?strategy=redis'
  curl %[1]s/stock/1
  LAB_TOKEN=%[3]s oversell run --target %[1]s redis
  jmeter -n -t jmeter/check-lock.jmx -Jport=%[2]s -Jstrategy=redis -Jtoken=%[3]s

Look into the servers:
%[4]s
Ctrl-C ends the lab.
`, addrs.Target, target.Port(), addrs.Token, clientCommands(addrs))
	return text.String(), nil
}

// mysqlClient is mysql, but where only MariaDB's own name of it is installed.
func mysqlClient() string {
	if _, err := exec.LookPath("mysql"); err != nil {
		if _, err := exec.LookPath("mariadb"); err == nil {
			return "mariadb"
		}
	}
	return "mysql"
}

// clientCommands open MySQL and Redis. The passwords go by environment: every user of the
// machine can read a command line.
func clientCommands(addrs rig.Addresses) string {
	var text strings.Builder
	if cfg, err := mysql.ParseDSN(addrs.MySQL); err == nil && addrs.MySQL != "" {
		host, port, _ := net.SplitHostPort(cfg.Addr)
		_, _ = fmt.Fprintf(&text, "  MYSQL_PWD=%s %s -h %s -P %s -u %s %s\n", cfg.Passwd, mysqlClient(), host, port, cfg.User, cfg.DBName)
	}
	if len(addrs.Redis) > 0 {
		if options, err := redis.ParseURL(addrs.Redis[0]); err == nil {
			host, port, _ := net.SplitHostPort(options.Addr)
			_, _ = fmt.Fprintf(&text, "  REDISCLI_AUTH=%s redis-cli -h %s -p %s\n", options.Password, host, port)
		}
	}
	return text.String()
}
