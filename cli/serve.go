package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"

	"oversell/handlers"
	"oversell/lab/load"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/locks/mysqllock"
	"oversell/stock"
)

// settings are the settings of a replica. Flags have precedence over environment variables.
type settings struct {
	Addr      string        `env:"ADDR" envDefault:"127.0.0.1:8000"`
	Replica   string        `env:"REPLICA"`
	MySQL     string        `env:"MYSQL_DSN" envDefault:"root@tcp(127.0.0.1:3306)/oversell"`
	Reads     string        `env:"MYSQL_READS"`
	Redis     string        `env:"REDIS_URL" envDefault:"redis://127.0.0.1:6379/0"`
	Redlock   []string      `env:"REDLOCK_URLS" envDefault:"redis://127.0.0.1:6379/0"`
	ZooKeeper []string      `env:"ZK_SERVERS" envDefault:"127.0.0.1:2181"`
	ZKSession time.Duration `env:"ZK_SESSION" envDefault:"10s"`
	Etcd      []string      `env:"ETCD_ENDPOINTS" envDefault:"127.0.0.1:2379"`
	Namespace string        `env:"NAMESPACE"`
	Lease     time.Duration `env:"LEASE" envDefault:"10s"`
	Conns     int           `env:"CONNS" envDefault:"32"`
	Drain     time.Duration `env:"DRAIN" envDefault:"0s"`
	Lab       bool          `env:"LAB"`
	Token     string        `env:"LAB_TOKEN"`
	Adapter   string        `env:"ADAPTER"`

	// The following settings have no flag: every user of the machine can read a command line.
	MySQLKey   string       `env:"MYSQL_PUBLIC_KEY"`
	MySQLCerts certificates `envPrefix:"MYSQL_"`
	ZKAuth     string       `env:"ZK_AUTH"`
	ZKTLS      bool         `env:"ZK_TLS"`
	ZKCerts    certificates `envPrefix:"ZK_"`
	EtcdAuth   string       `env:"ETCD_AUTH"`
	EtcdCerts  certificates `envPrefix:"ETCD_"`

	Tracing tracing
}

func serveCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:   "serve",
		Short: "Run one replica of the service",
		Long:  "Run one replica. It starts also if backends are missing; only the strategies that need them answer 503.\nEach flag has an environment variable. The flag has precedence.\nEach variable can also be a file: MYSQL_DSN_FILE names a file with the value of MYSQL_DSN.\nThe variables of OpenTelemetry turn traces on, for example OTEL_EXPORTER_OTLP_ENDPOINT: see docs/observe.md.",
	}, addServeFlags, func(c *cobra.Command, s *settings) error {
		if err := s.check(); err != nil {
			return &exit{2, err}
		}
		return serve(c.Context(), *s)
	})
}

func addServeFlags(s *settings, f *pflag.FlagSet) {
	f.StringVar(&s.Addr, "addr", s.Addr, "host:port to listen on (ADDR)")
	f.StringVar(&s.Replica, "replica", s.Replica, "this replica's name; the host's name by default (REPLICA)")
	f.StringVar(&s.MySQL, "mysql", s.MySQL, "user:password@tcp(host:port)/database (MYSQL_DSN)")
	f.StringVar(&s.Reads, "mysql-reads", s.Reads, "a follower of --mysql where plain SELECTs read the stock. Only to show the danger: a follower lags, so the next holder of a lock may not see the last sale (MYSQL_READS)")
	f.StringVar(&s.Redis, "redis", s.Redis, "redis://[user:password@]host:port/db (REDIS_URL)")
	f.StringSliceVar(&s.Redlock, "redlock", s.Redlock, "the independent masters of redlock, separated by commas (REDLOCK_URLS)")
	f.StringSliceVar(&s.ZooKeeper, "zookeeper", s.ZooKeeper, "host:port of the ensemble, separated by commas (ZK_SERVERS)")
	f.DurationVar(&s.ZKSession, "zk-session", s.ZKSession, "ZooKeeper's session time-out (ZK_SESSION)")
	f.StringSliceVar(&s.Etcd, "etcd", s.Etcd, "host:port of etcd's members, separated by commas (ETCD_ENDPOINTS)")
	f.StringVar(&s.Namespace, "namespace", s.Namespace, "a name before the key of each lock, if other deployments use the same servers; the same for all replicas (NAMESPACE)")
	f.DurationVar(&s.Lease, "lease", s.Lease, "lease of a lock, unless the request has another (LEASE)")
	f.IntVar(&s.Conns, "conns", s.Conns, "maximum number of connections to each backend (CONNS)")
	f.DurationVar(&s.Drain, "drain", s.Drain, "time for which a stopping replica still serves, while /readyz answers 503; longer than the balancer takes to notice it (DRAIN)")
	f.BoolVar(&s.Lab, "lab", s.Lab, "let clients with the token set the stock; needs --token (LAB)")
	f.StringVar(&s.Token, "token", s.Token, "the lab's token (LAB_TOKEN)")
	f.StringVar(&s.Adapter, "adapter", s.Adapter, "a `COMMAND` of the shell that runs a lock in another language, as the strategy adapter; see docs/adapter.md (ADAPTER)")
}

// namespaces are the names that all servers accept in a key.
var namespaces = regexp.MustCompile(`^([[:alnum:]]([\w.-]{0,30}[[:alnum:]])?)?$`)

func (s *settings) check() error {
	if s.Replica == "" {
		s.Replica, _ = os.Hostname()
	}
	for name, list := range map[string][]string{"--redlock": s.Redlock, "--zookeeper": s.ZooKeeper, "--etcd": s.Etcd} {
		for i := range list {
			if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
				return fmt.Errorf("%s has an empty address between its commas", name)
			}
		}
	}
	if err := sendable(s.Token); err != nil {
		return err
	}
	switch {
	case s.Lab && s.Token == "":
		return errors.New("--lab needs --token, which protects the stock from other clients")
	case s.Conns < 2: // migrations use one connection while another one holds their lock
		return fmt.Errorf("--conns %d: must be 2 or more", s.Conns)
	case s.Lease < load.MinLease, s.ZKSession < load.MinLease:
		return fmt.Errorf("--lease and --zk-session must be %v or more", load.MinLease)
	case s.Drain < 0 || s.Drain > time.Minute:
		return fmt.Errorf("--drain %v: must be 0s to 1m0s", s.Drain)
	case !namespaces.MatchString(s.Namespace):
		return fmt.Errorf("--namespace %q: must be 32 characters or fewer: letters, digits, and between them . - _", s.Namespace)
	case len(s.Replica) > 64:
		return errors.New("--replica must be 64 characters or fewer")
	}
	return s.Tracing.check()
}

// serve runs a replica until ctx ends. Then the replica drains, completes the running requests and stops.
func serve(ctx context.Context, s settings) error {
	// A replica needs little memory, so collect garbage less often to save time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("replica", s.Replica)
	clients, err := openBackends(s)
	if err != nil {
		return &exit{2, err}
	}
	defer clients.close()
	strategies := catalog.Strategies(clients.Backends)
	if s.Adapter != "" {
		lock, err := startAdapter(ctx, s)
		if err != nil {
			return err
		}
		defer lock.Close()
		strategies = append(strategies, locks.Guard(locks.Within(s.Namespace, lock), stock.NewLedger(clients.DB)))
	}
	defer runBackground(ctx, clients, s, strategies, log)()
	traces, stopTracing, err := s.Tracing.start(ctx, s.Replica, log)
	if err != nil {
		return &exit{2, err}
	}
	defer stopTracing()
	service := newService(s, clients, strategies, traces, log)
	defer service.ReleaseKept()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	requests, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	server := &http.Server{
		Handler: service, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	server.RegisterOnShutdown(service.Close)
	log.Info("serving", "addr", listener.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping after the drain and the running requests", "drain", s.Drain)
	service.Drain(s.Drain)
	return shutdown(server, abandon)
}

func newService(s settings, clients *clients, strategies []locks.Strategy, traces trace.TracerProvider, log *slog.Logger) *handlers.Service {
	ledger, byHand := stock.NewLedger(clients.DB), clients.Backends
	byHand.DB = clients.byHand
	return handlers.New(handlers.Config{
		Replica: s.Replica, Strategies: strategies, Source: sourceOf,
		PrimitiveCards: catalog.PrimitiveCards(), PrimitiveSource: catalog.PrimitiveSource,
		Primitives: catalog.Primitives(clients.Backends), Lockers: catalog.Lockers(clients.Backends), ByHand: catalog.ByHand(byHand),
		Ledger: ledger, Resets: stock.NewLedger(clients.resets),
		Exists:  func(ctx context.Context, product int64) error { _, err := ledger.ReadPrimary(ctx, product); return err },
		Coupons: stock.NewCoupons(clients.DB), Recharges: stock.NewRecharges(clients.DB),
		Tickets:  stock.NewTickets(clients.DB),
		Backends: clients.pings(), Advise: advise, Unfit: clients.unfit, Lab: s.Lab, Token: s.Token, Metrics: processMetrics(clients), Traces: traces,
		Log: func(format string, args ...any) { log.Error(fmt.Sprintf(format, args...)) },
	})
}

// runBackground starts background work. Call end after the last sale, before the backends close.
func runBackground(ctx context.Context, clients *clients, s settings, strategies []locks.Strategy, log *slog.Logger) (end func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	for _, backend := range clients.pings() {
		longest, try := 10*time.Second, func(ctx context.Context) error {
			once, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return backend.Ping(once)
		}
		if backend.Name == "mysql" {
			longest, try = 200*time.Millisecond, clients.migrate
		}
		go func() {
			untilUsable(ctx, backend.Name, longest, log, try)
			if granted := clients.ZooKeeper.Timeout(); backend.Name == "zookeeper" && granted < s.ZKSession {
				log.Warn("ZooKeeper's session is shorter than ZK_SESSION: locks on ZooKeeper count with the shorter time; a longer one needs maxSessionTimeout in zoo.cfg",
					"ZK_SESSION", s.ZKSession, "granted", granted)
			}
		}()
	}
	var running sync.WaitGroup
	if !s.Lab || s.Adapter == "" { // beside a lock on trial, only the lock itself sends commands
		go mysqllock.Janitor(ctx, clients.DB, time.Minute)
		go mysqllock.CleanRows(ctx, clients.DB, time.Second)
		for _, strategy := range strategies {
			if runner, ok := strategy.(locks.Runner); ok {
				running.Go(func() { runner.Run(ctx) })
			}
		}
	}
	return func() {
		// Wait, because a lock whose release is not complete stays locked until its lease expires.
		releases, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		locks.AwaitReleases(releases)
		stop()
		running.Wait()
	}
}

// shutdown cancels requests that still run after 15 s. A cancelled request releases its lock.
func shutdown(server *http.Server, abandon context.CancelFunc) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if server.Shutdown(ctx) == nil {
		return nil
	}
	abandon()
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

func processMetrics(clients *clients) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if pool, err := clients.DB.DB(); err == nil {
		registry.MustRegister(collectors.NewDBStatsCollector(pool, "mysql"))
	}
	if clients.reads != nil {
		registry.MustRegister(collectors.NewDBStatsCollector(clients.reads, "mysql-reads"))
	}
	return registry
}
