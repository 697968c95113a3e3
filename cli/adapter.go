package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/suggest"
	"oversell/locks/catalog"
	"oversell/trial/adapter"
	"oversell/trial/process"
)

// adapterCommand serves a strategy of this program behind the protocol of docs/adapter.md. With it,
// the verdicts on a strategy can be compared with those on the same lock as an adapter.
func adapterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "adapter STRATEGY",
		Short:  "Serve the lock of a strategy as an adapter: requests on stdin, answers on stdout",
		Hidden: true,
		Args:   between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serveAdapter(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func serveAdapter(ctx context.Context, id string, in io.Reader, out io.Writer) error {
	s, err := adapterSettings()
	if err != nil {
		return &exit{2, err}
	}
	clients, err := openBackends(s)
	if err != nil {
		return &exit{2, err}
	}
	defer clients.close()
	lockers := catalog.ByHand(clients.Backends)
	locker, known := lockers[id]
	if !known {
		return &exit{2, &suggest.Unknown{Kind: "lock", Name: id, Known: slices.Sorted(maps.Keys(lockers))}}
	}
	return adapter.Serve(ctx, in, out, adapter.HelloOf(locker.Card(), version, true), locker)
}

// adapterSettings reads the environment of an adapter. LEASE_MS and SESSION_MS have precedence over
// the variables of a replica.
func adapterSettings() (settings, error) {
	var s settings
	if err := s.readEnvironment(); err != nil {
		return s, fmt.Errorf("environment: %w", err)
	}
	for name, into := range map[string]*time.Duration{"LEASE_MS": &s.Lease, "SESSION_MS": &s.ZKSession} {
		if text := os.Getenv(name); text != "" {
			ms, err := strconv.Atoi(text)
			if err != nil || ms < 100 {
				return s, fmt.Errorf("environment: %s %q: must be a number of milliseconds, 100 or more", name, text)
			}
			*into = time.Duration(ms) * time.Millisecond
		}
	}
	return s, nil
}

// adapterEnv returns the environment of the adapter of a replica with these settings. It has the
// addresses of the servers, also those from files, and no token of the lab.
func (s settings) adapterEnv() []string {
	left := []string{
		"LAB_TOKEN", "LAB_TOKEN_FILE", "ADAPTER", "ADAPTER_FILE",
		"MYSQL_DSN_FILE", "REDIS_URL_FILE", "REDLOCK_URLS_FILE", "ZK_SERVERS_FILE", "ETCD_ENDPOINTS_FILE",
	}
	inherited := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(left, name)
	})
	return append(inherited,
		"MYSQL_DSN="+s.MySQL, "MYSQL_URL="+mysqlURL(s.MySQL), "REDIS_URL="+s.Redis, "REDLOCK_URLS="+strings.Join(s.Redlock, ","),
		"ZK_SERVERS="+strings.Join(s.ZooKeeper, ","), "ETCD_ENDPOINTS="+strings.Join(s.Etcd, ","),
		fmt.Sprintf("LEASE_MS=%d", s.Lease.Milliseconds()), fmt.Sprintf("SESSION_MS=%d", s.ZKSession.Milliseconds()),
	)
}

// mysqlURL returns the address of a data source name as a URL, which drivers of other languages read. It is empty
// for a socket.
func mysqlURL(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil || cfg.Net != "tcp" {
		return ""
	}
	u := url.URL{Scheme: "mysql", Host: cfg.Addr, Path: "/" + cfg.DBName, User: url.UserPassword(cfg.User, cfg.Passwd)}
	return u.String()
}

// startAdapter starts the adapter of the settings. The program's log goes to our standard error.
func startAdapter(ctx context.Context, s settings) (*adapter.Adapter, error) {
	lock, err := adapter.Start(ctx, adapter.Shell(s.Adapter, "", s.adapterEnv()), os.Stderr)
	if err != nil {
		return nil, fmt.Errorf("--adapter %s: %w", process.Quoted(s.Adapter), err)
	}
	return lock, nil
}

// sourceOf returns the code of a strategy. That of an adapter is unknown.
func sourceOf(card api.Card) ([]api.File, error) {
	if card.ID == adapter.ID {
		return nil, nil
	}
	return catalog.Source(card)
}
