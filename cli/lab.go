package cli

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"oversell/dash"
	"oversell/lab/load"
	"oversell/lab/rig"
	"oversell/trial/process"
)

type labFlags struct {
	rig.Config // as far as the flags are its settings
	servers    ownLab
	json       string
	ports      string
	share      string
	mysql      string
	open       bool
	lease      time.Duration
	traces     string
}

// accountForm has the names that each server accepts.
var accountForm = regexp.MustCompile(`^[A-Za-z]\w{0,31}:\w{1,64}$`)

// shareDefault is the address of --share without a value.
const shareDefault = ":8300"

const labLong = `Starts MySQL or MariaDB, five Redis, ZooKeeper, etcd, nginx and the replicas as child
processes on loopback, prints their addresses, and waits. Ctrl-C or SIGTERM ends it. Then no
process, port or file is left, except the file of --json, which appears when the lab is ready.

nginx listens on port 8080, and the replicas on 8000, 8100 and 8200. If a port is in use, and
for the other servers, it takes any free port. So several labs can run at the same time.

With --ports fixed, MySQL is at port 3306, Redis at 6379 to 6383, ZooKeeper at 2181 and etcd at
2379, as tutorials and programs expect. If another program has one of these ports, the command names
it and starts nothing: at other ports, your programs would connect to that program. The user of all
servers is oversell, with a random password, or both are those of --login USER:PASSWORD. (Other users
of the machine can read a command line.) The command settings prints them for a program of your own. The
user may create databases whose names begin with test.

With --mysql galera, the stock is in a Galera cluster of three MariaDB. HAProxy lets all replicas write
at one node. With --redis sentinel, the strategies on a single Redis use a master with two replicas, which
three Sentinels watch; with --redis cluster, they use a cluster of three masters with a replica
each. The five independent Redis of redlock run beside it. --zookeeper 3 and --etcd 3 start
ensembles in place of single servers. With --tls, the replicas connect to all servers
with TLS, and as users with few rights.

Other users of the machine cannot use the servers: each has a password, which the commands mysql,
redis-cli, zkcli and etcdctl know. With --open, ZooKeeper and etcd have none, for programs that
connect to them without one.

With --fsync, the servers sync each write to the disk before they answer, and with --disk 2ms each sync
takes 2 ms longer. With --delay 1ms, each answer of a server arrives 1 ms later.

With --lease 30s, locks have the lease of Redisson's watchdog (lockWatchdogTimeout): it is renewed every
10 s, and the lock of a dead holder is free after 30 s at most. A replica that you kill (kill -9 with the
pid that the lab prints) starts again at once, on the same port. With --restart=false it stays dead.

With --metrics, a Prometheus reads the metrics of the replicas each second, on port 9090 if it is
free. The lab prints the address of its page. With --traces, the replicas trace each request, and
append the spans to a file, one JSON object in each line: see docs/observe.md.

With --share, phones in the network see the pages at port 8300, or at --share ADDRESS. They can
look and vote, and nothing else. The lab prints their link, also as a QR code.`

func labCommand() *cobra.Command {
	flags := labFlags{Config: rig.FullLab("", "")}
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Start the whole lab on this machine, until Ctrl-C",
		Long:  labLong,
		Example: `  oversell lab
  oversell lab --ports fixed --login root:root
  oversell lab --json lab.json & until [ -f lab.json ]; do sleep 0.1; done`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.share == shareDefault && len(args) == 1 { // --share ADDRESS, without =
				return nil
			}
			return noArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.share = args[0]
			}
			return flags.run(cmd.Context(), cmd.Root().CommandPath(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addLabFlags(cmd, &flags)
	return cmd
}

func addLabFlags(cmd *cobra.Command, flags *labFlags) {
	cmd.Flags().StringVar(&flags.json, "json", "", "write the addresses to `FILE` when the lab is ready; an existing file is removed first")
	flags.servers.register(cmd.Flags())
	cmd.Flags().IntVar(&flags.Ports.Nginx, "port", 8080, "port of nginx, if it is free")
	cmd.Flags().StringVar(&flags.ports, "ports", "", "with `fixed`, MySQL, Redis, ZooKeeper and etcd get their usual ports, or the lab does not start")
	cmd.Flags().StringVar(&flags.Account, "login", "", "`USER:PASSWORD` of all servers, of letters, digits and _ (default the user oversell, with a random password)")
	addToken(cmd.Flags(), &flags.Token, "the lab's token, which resetting the stock requires (default $LAB_TOKEN, or a random one)")
	cmd.Flags().StringVar(&flags.mysql, "mysql", "", "store the stock in a `CLUSTER` of three MariaDB: galera")
	cmd.Flags().StringVar((*string)(&flags.RedisTopology), "redis", "", "run the single Redis behind a `TOPOLOGY`: sentinel or cluster")
	cmd.Flags().BoolVar(&flags.TLS, "tls", false, "connect the replicas to all servers with TLS; not with --redis")
	cmd.Flags().IntVar(&flags.Zookeeper, "zookeeper", 1, "number of ZooKeeper servers, 1 to 9")
	cmd.Flags().IntVar(&flags.Etcd, "etcd", 1, "number of etcd servers, 1 to 9")
	cmd.Flags().BoolVar(&flags.open, "open", false, "let every program of this machine use ZooKeeper and etcd without a password")
	cmd.Flags().DurationVar(&flags.lease, "lease", defaults().Lease, "lease of a lock, unless the request has another; the watchdog renews it after each third")
	cmd.Flags().BoolVar(&flags.Restart, "restart", true, "start a replica again that was killed, or has died")
	cmd.Flags().BoolVar(&flags.Prometheus, "metrics", false, "start Prometheus, which shows the metrics of the replicas")
	cmd.Flags().StringVar(&flags.traces, "traces", "", "write the spans of all requests to `FILE`, one JSON object in each line; an existing file is replaced")
	cmd.Flags().StringVar(&flags.share, "share", "", "let phones look and vote, without the token, at an `ADDRESS` of this machine")
	cmd.Flags().Lookup("share").NoOptDefVal = shareDefault
}

// startLab starts a lab on free ports, for a single command. change may adapt the lab's settings.
func startLab(ctx context.Context, quiet bool, errOut io.Writer, change func(*rig.Config)) (*rig.Rig, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg := rig.OwnLab(program, errOut)
	onExit := cfg.OnExit
	if !quiet {
		cfg.Log = errOut
		_, _ = fmt.Fprintln(errOut, "starting a lab")
	}
	change(&cfg)
	cfg.OnExit = onExit // also if change has replaced all settings
	return rig.Start(ctx, cfg)
}

func (f labFlags) run(ctx context.Context, program string, out, errOut io.Writer) error {
	if err := f.servers.check(""); err != nil {
		return &exit{2, err}
	}
	topologies := []rig.Topology{rig.OneRedis, rig.RedisSentinel, rig.RedisCluster}
	switch {
	case f.Ports.Nginx < 1 || f.Ports.Nginx > 65535:
		return usage("--port %d: must be 1 to 65535", f.Ports.Nginx)
	case f.ports != "" && f.ports != "fixed":
		return usage("--ports %q: must be fixed", f.ports)
	case f.Account != "" && !accountForm.MatchString(f.Account):
		return usage("--login %q: must be USER:PASSWORD, of English letters, digits and _", f.Account)
	case !slices.Contains(topologies, f.RedisTopology):
		return usage("--redis %q: must be %s or %s", f.RedisTopology, rig.RedisSentinel, rig.RedisCluster)
	case f.mysql != "" && f.mysql != "galera":
		return usage("--mysql %q: must be galera", f.mysql)
	case f.TLS && f.RedisTopology != rig.OneRedis:
		return usage("--tls cannot be used with --redis %s", f.RedisTopology)
	case f.Zookeeper < 1 || f.Zookeeper > 9 || f.Etcd < 1 || f.Etcd > 9:
		return usage("--zookeeper %d, --etcd %d: must be 1 to 9", f.Zookeeper, f.Etcd)
	case f.lease < load.MinLease:
		return usage("--lease %v: must be %v or more", f.lease, load.MinLease)
	}
	// A script that waits for the file must not read the addresses of an earlier lab.
	if f.json != "" {
		if err := os.Remove(f.json); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--json: %w", err)
		}
	}
	return f.serve(ctx, program, out, errOut)
}

// config returns the configuration of the lab. It makes a new file for --traces.
func (f labFlags) config(errOut io.Writer) (cfg rig.Config, err error) {
	program, err := os.Executable()
	if err != nil {
		return cfg, err
	}
	own := rig.OwnLab(program, errOut)
	cfg = f.Config
	f.servers.configure(&cfg)
	cfg.Binary, cfg.OnExit, cfg.Token = own.Binary, own.OnExit, cmp.Or(cfg.Token, own.Token)
	cfg.Log, cfg.Login, cfg.ReplicaArgs = errOut, !f.open, []string{"--lease", f.lease.String()}
	cfg.Ports.Prometheus, cfg.Ports.Replicas = 9090, []int{8000, 8100, 8200}
	if f.ports != "" {
		cfg.Ports.Backends = rig.BackendPorts{MySQL: 3306, Redis: 6379, Zookeeper: 2181, Etcd: 2379}
	}
	if f.mysql != "" {
		cfg.Database = rig.GaleraCluster
	}
	if err := sendable(cfg.Token); err != nil {
		return cfg, &exit{2, err}
	}
	if f.traces == "" {
		return cfg, nil
	}
	path, err := filepath.Abs(f.traces)
	if err == nil {
		err = os.WriteFile(path, nil, 0o666) //nolint:gosec // the user's choice, as a shell would make it
	}
	if err != nil {
		return cfg, fmt.Errorf("--traces: %w", err)
	}
	cfg.ReplicaEnv = allTraces(path)
	return cfg, nil
}

func (f labFlags) serve(ctx context.Context, program string, out, errOut io.Writer) error {
	cfg, err := f.config(errOut)
	if err != nil {
		return err
	}
	page, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	defer func() { _ = page.Close() }()
	cfg.Page = page.Addr().String()
	phones, link, err := sharePage(ctx, f.share)
	if err != nil {
		return err
	}
	if phones != nil {
		defer func() { _ = phones.Close() }()
	}
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return err
	}
	closePage := servePage(ctx, page, phones, dash.Config{Lab: lab.Addresses(), Binary: cfg.Binary, OnExit: cfg.OnExit, Share: link})
	if few := load.CheckOpenFiles(200); few != nil {
		_, _ = fmt.Fprintf(errOut, "note: %v\n", few)
	}
	if err = f.announce(lab, program, link, out); err == nil {
		<-ctx.Done()
		_, _ = fmt.Fprintln(errOut, "closing the lab")
	}
	closePage()
	return errors.Join(err, lab.Close())
}

// announce says that the lab is ready: to other commands, in the file of --json, and to the user.
func (f labFlags) announce(lab *rig.Rig, program, link string, out io.Writer) error {
	if err := lab.Announce(); err != nil {
		return err
	}
	if f.json != "" {
		if err := lab.Addresses().WriteFile(f.json); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	text, err := f.readyText(lab.Addresses(), lab.Dir(), lab.Config().Ports)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, asTyped(text, program)); err != nil || link == "" {
		return err
	}
	return printLink(out, link)
}

//go:embed lab.tmpl
var labText string

// readyText names the lab's addresses, the wanted ports that others use, and commands to try.
func (f labFlags) readyText(addrs rig.Addresses, logs string, wanted rig.Ports) (string, error) {
	functions := template.FuncMap{
		"join": strings.Join, "port": portOf, "query": url.QueryEscape, "quoted": process.Quoted,
		"nth": func(i int) int { return i + 1 },
		"busy": func(address string, wanted int) string {
			if wanted == 0 || portOf(address) == strconv.Itoa(wanted) {
				return ""
			}
			return fmt.Sprintf("  (%d is in use)", wanted)
		},
	}
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	err := template.Must(template.New("").Funcs(functions).Parse(labText)).Execute(out, struct {
		rig.Addresses
		Logs, Traces string
		Wanted       rig.Ports
	}{addrs, logs, f.traces, wanted})
	return text.String(), errors.Join(err, out.Flush())
}
