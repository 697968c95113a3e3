package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/lab/suggest"
)

// Rig is a set of running servers.
type Rig struct {
	cfg      Config
	dir      string // the scratch folder
	launcher *launcher
	reaper   *reaper
	secrets  secrets
	ports    ports
	addrs    Addresses

	databases  []*Server // one, or all nodes of a pair or cluster; also among the backends
	backends   []*Server // MySQL, Redis, ZooKeeper, etcd
	nginx      []*Server // one or none
	prometheus []*Server // one or none
	replicas   []*Server
	links      []*Link  // from the replicas to the backends, and from redis-1-replica to redis-1
	found      programs // the installed ones
	setUpErr   error    // the first error of the preparations; see check
	inUse      string   // a line for each required port that another program has

	ctx     context.Context // ends when Close begins
	closing context.CancelFunc
	close   func() error // runs shutDown once
	logging sync.Mutex

	changing    sync.Mutex
	cancelStart context.CancelFunc // nil when the start is over
	death       error              // the death of a server that ended the start
}

// Start starts the servers of cfg and returns when all of them serve. If one fails, or ctx ends
// first, it stops them all. After Start, ctx has no effect: the servers run until Close. A missing
// program gives an error that wraps ErrMissing.
func Start(ctx context.Context, cfg Config) (*Rig, error) {
	if err := errors.Join(cfg.validate(), checkOpenFiles()); err != nil {
		return nil, err
	}
	found, err := find(cfg)
	if err != nil {
		return nil, err
	}
	dir, err := newFolder()
	if err != nil {
		return nil, err
	}
	r := &Rig{cfg: cfg, dir: dir, secrets: newSecrets(cfg.Account), found: found}
	sweep(filepath.Dir(dir), r.logf)
	r.reaper, err = startReaper(dir)
	if err != nil {
		return nil, err
	}
	r.launcher, err = newLauncher(cfg.Cores)
	r.ctx, r.closing = context.WithCancel(context.Background())
	r.close = sync.OnceValue(r.shutDown)

	if err == nil {
		err = r.setUp(ctx)
	}
	if err != nil {
		return nil, errors.Join(fullDisk(dir), err, r.Close()) // the cause first
	}
	return r, nil
}

// checkOpenFiles returns an error if the limit of open files is too low for the servers. etcd needs most.
func checkOpenFiles() error {
	const need = 200
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && limit.Cur < need {
		return fmt.Errorf("rig: a process may open %d files, and some servers need %d: raise the limit with ulimit -n %d", limit.Cur, need, need)
	}
	return nil
}

// setUp fails as soon as any server dies, even one that was ready, because others need it.
func (r *Rig) setUp(ctx context.Context) error {
	ctx, r.cancelStart = context.WithCancel(ctx)
	defer r.cancelStart()
	err := r.build(ctx)
	if err == nil {
		err = r.enter(ctx)
	}
	if err == nil {
		r.addServers()
		if r.inUse != "" { // all of them, so that the user can end their programs at once
			r.check(fmt.Errorf("rig: the servers cannot have these ports:\n%sEnd these programs, or start the lab without fixed ports: then it takes free ones", r.inUse))
		}
		err = r.setUpErr
	}
	if err == nil {
		err = r.startAll(ctx)
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	r.cancelStart = nil
	return cmp.Or(r.death, err)
}

// died handles the death of a server, and reports whether all servers were ready before it.
func (r *Rig) died(e Exit) (ready bool) {
	if err := fullDisk(r.dir); err != nil {
		e.Tail += "\n" + err.Error()
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	switch {
	case r.cancelStart != nil:
		r.death = cmp.Or(r.death, fmt.Errorf("rig: %s died before the lab was ready (%s), its log ends with:\n%s", e.Name, e.Status, e.Tail))
		r.cancelStart()
		return false
	case r.cfg.OnExit != nil:
		r.cfg.OnExit(e)
	}
	return true
}

// build compiles oversell if needed. The reaper ends the compiler of a killed test.
func (r *Rig) build(ctx context.Context) error {
	if r.cfg.Replicas == 0 || r.cfg.Binary != "" {
		return nil
	}
	r.cfg.Binary = filepath.Join(r.dir, "oversell")
	build := BuildCommand(r.cfg.Binary)
	return r.run(ctx, "build oversell", "build.log", command{path: build.Path, args: build.Args[1:], env: build.Env})
}

// addServers reserves a port for each server and writes its configuration. It starts none.
func (r *Rig) addServers() {
	r.addrs.Token = r.cfg.Token
	if r.cfg.Login {
		r.addrs.Login = r.secrets.name + ":" + r.secrets.user
	}
	if r.cfg.TLS {
		var err error
		r.cfg.Certificates, err = makeCertificates(r.dir)
		r.check(err)
	}
	if r.cfg.Certificates != nil {
		r.addrs.CA = r.cfg.Certificates.CA
	}
	if r.cfg.MySQL && r.cfg.Host == nil {
		r.addMySQL()
	}
	for i := range r.cfg.Redis {
		r.addRedis(i + 1)
	}
	if r.cfg.RedisReplica {
		r.addRedisReplica()
	}
	r.addTopology()
	if r.cfg.Zookeeper > 0 && r.cfg.Host == nil {
		r.addZookeepers()
	}
	if r.cfg.Etcd > 0 {
		r.addEtcds()
	}
	if r.cfg.Postgres {
		r.addPostgres()
	}
	for i := range r.cfg.Replicas {
		r.addReplica(i + 1)
	}
	switch {
	case r.cfg.Nginx:
		r.addNginx()
	case r.cfg.Replicas > 0:
		r.addrs.Target = r.addrs.Replicas[0]
	}
	if r.cfg.Prometheus {
		r.addPrometheus()
	}
}

// check stores the first error of the preparations, which setUp returns before any server starts.
func (r *Rig) check(err error) { r.setUpErr = cmp.Or(r.setUpErr, err) }

func memberNames(kind string, n int) []string {
	if n <= 1 {
		return []string{kind}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", kind, i+1)
	}
	return names
}

func (r *Rig) takeAddr() string {
	port, err := r.ports.take(0)
	r.check(err)
	return hostPort(port)
}

// startAll starts the backends, nginx and Prometheus concurrently, and the replicas after them. It returns when
// each replica of a complete rig reaches all its backends, and nginx reaches the replicas.
func (r *Rig) startAll(ctx context.Context) error {
	began := time.Now()
	if err := startServers(ctx, slices.Concat(r.backends, r.nginx, r.prometheus)); err != nil {
		return err
	}
	if err := r.refuseStrangers(ctx); err != nil {
		return err
	}
	if r.cfg.RedisTopology == RedisCluster {
		if err := r.joinCluster(ctx); err != nil {
			return err
		}
	}
	if err := r.startReplicas(ctx); err != nil {
		return err
	}
	for _, s := range slices.Concat(r.replicas, r.nginx) {
		if err := s.AwaitReady(ctx); err != nil {
			return err
		}
	}
	r.logf("ready after %.2f s", time.Since(began).Seconds())
	return nil
}

// AwaitReady waits until each replica reaches all its backends, as after a fail-over. It does not wait for the
// replicas named except, whose backends may reject writes.
func (r *Rig) AwaitReady(ctx context.Context, except ...string) error {
	for _, s := range r.replicas {
		if slices.Contains(except, s.Name()) {
			continue
		}
		if err := s.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Await calls probe until it returns nil, for two minutes at most. Its error names the condition.
func Await(ctx context.Context, condition string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := poll(ctx, nil, probe); err != nil {
		return fmt.Errorf("rig: waited too long until %s: %w", condition, err)
	}
	return nil
}

// poll calls probe until it returns nil, ended is closed or ctx ends. It returns the last error.
func poll(ctx context.Context, ended <-chan struct{}, probe func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, probeTimeout)
		err := probe(once)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(probePause):
		}
	}
}

func startServers(ctx context.Context, servers []*Server) error {
	if ctx.Err() != nil {
		return fmt.Errorf("rig: start: %w", context.Cause(ctx))
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range servers {
		group.Go(func() error { return s.Start(ctx) })
	}
	return group.Wait()
}

// At returns a lab that another program has started. It has no servers and no links of its own, so nothing can be injected.
func At(addrs Addresses) *Rig { return &Rig{addrs: addrs, close: func() error { return nil }} }

// Config returns the configuration of the rig.
func (r *Rig) Config() Config { return r.cfg }

// Addresses returns the addresses of all servers.
func (r *Rig) Addresses() Addresses { return r.addrs }

// Dir returns the scratch folder, which has a log of each server.
func (r *Rig) Dir() string { return r.dir }

// Servers returns all servers: the backends, nginx, Prometheus, the replicas.
func (r *Rig) Servers() []*Server {
	return slices.Concat(r.backends, r.nginx, r.prometheus, r.replicas)
}

// Server returns the server of that name. Names are mysql, mysql-2 (of a pair or cluster), haproxy,
// redis-1, redis-1-replica, redis-master, redis-replica-1, sentinel-1, redis-node-1, zookeeper, zookeeper-1 (of an
// ensemble), etcd, etcd-1 (of a cluster), postgres, pgbouncer, nginx, prometheus and replica-1.
func (r *Rig) Server(name string) (*Server, error) {
	return suggest.Find("server", name, r.Servers(), (*Server).Name)
}

// Close stops all servers and removes their files. The replicas finish their requests before nginx
// and the backends end. Close may be called again. Even after an error, no server runs any more.
func (r *Rig) Close() error { return r.close() }

func (r *Rig) shutDown() error {
	r.closing()
	stop := func(s *Server) error { return s.Stop(context.Background()) }
	kill := func(s *Server) error { s.Kill(); return nil }
	// End all faults first, or a replica would await lost answers, or miss the signal to end.
	err := concurrently(r.Servers(), (*Server).Resume)
	for _, l := range r.links {
		err = errors.Join(err, l.Restore())
	}
	err = errors.Join(err, concurrently(r.replicas, stop), concurrently(r.nginx, stop), concurrently(slices.Concat(r.backends, r.prometheus), kill))
	for _, l := range r.links {
		l.proxy.Stop()
	}
	err = errors.Join(err, r.reaper.close())
	r.launcher.close()
	r.ports.release()
	// The reaper has removed the folder, unless the reaper was killed.
	if rest := os.RemoveAll(r.dir); rest != nil {
		err = errors.Join(err, fmt.Errorf("rig: %w", rest))
	}
	return err
}

func concurrently(servers []*Server, end func(*Server) error) error {
	errs := make([]error, len(servers))
	var ending sync.WaitGroup
	for i, s := range servers {
		ending.Go(func() { errs[i] = end(s) })
	}
	ending.Wait()
	return errors.Join(errs...)
}

func (r *Rig) logf(format string, args ...any) {
	if r.cfg.Log == nil {
		return
	}
	r.logging.Lock()
	defer r.logging.Unlock()
	_, _ = fmt.Fprintf(r.cfg.Log, format+"\n", args...)
}
