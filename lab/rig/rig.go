package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// errClosed means that a server of a closed rig cannot be started.
var errClosed = errors.New("the rig is closed")

// Rig is a set of running servers.
type Rig struct {
	cfg      Config
	dir      string // the scratch folder
	launcher *launcher
	reaper   *reaper
	secrets  secrets
	ports    ports
	addrs    Addresses
	mysqlB   string // like Addresses.MySQL, for the second node of a pair

	backends []*Server // MySQL, Redis, ZooKeeper, etcd
	replicas []*Server
	nginx    *Server // or nil
	links    []*Link // from the replicas to the backends, and among these

	ctx     context.Context // ends when Close begins
	closing context.CancelFunc
	close   func() error // once
	logging sync.Mutex

	changing sync.Mutex
	fail     context.CancelCauseFunc // ends the start; nil when that is over
}

// Start starts the servers of cfg and returns when all of them serve. If one fails, or ctx ends
// first, it stops them all. After Start, ctx has no effect: the servers run until Close.
//
// A missing program gives an error that wraps ErrMissing.
func Start(ctx context.Context, cfg Config) (*Rig, error) {
	if err := cfg.validate(); err != nil {
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
	r := &Rig{cfg: cfg, dir: dir, secrets: newSecrets()}
	sweep(filepath.Dir(dir), r.logf)
	r.reaper, err = startReaper(dir)
	if err != nil {
		return nil, err
	}
	r.launcher = newLauncher()
	r.ctx, r.closing = context.WithCancel(context.Background())
	r.close = sync.OnceValue(r.shutDown)

	if err := r.setUp(ctx, found); err != nil {
		return nil, errors.Join(fullDisk(dir), err, r.Close()) // the cause first
	}
	return r, nil
}

// setUp fails as soon as a server dies, also one that was ready: the others need it.
func (r *Rig) setUp(ctx context.Context, found programs) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r.changing.Lock()
	r.fail = fail
	r.changing.Unlock()
	err := r.setUpAll(ctx, found)
	r.changing.Lock()
	r.fail = nil
	r.changing.Unlock()
	if death := (*deathError)(nil); errors.As(context.Cause(ctx), &death) {
		return death
	}
	return err
}

// deathError is the reason why a start failed.
type deathError struct{ Exit }

func (e *deathError) Error() string {
	return fmt.Sprintf("rig: %s died before the lab was ready (%s), its log ends with:\n%s", e.Name, e.Status, e.Tail)
}

// died handles a server that was ready and died unexpectedly.
func (r *Rig) died(e Exit) {
	if err := fullDisk(r.dir); err != nil {
		e.Tail += "\n" + err.Error()
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	switch {
	case r.fail != nil:
		r.fail(&deathError{e})
	case r.cfg.OnExit != nil:
		r.cfg.OnExit(e)
	}
}

func (r *Rig) setUpAll(ctx context.Context, found programs) error {
	if r.cfg.Replicas > 0 && r.cfg.Binary == "" {
		r.cfg.Binary = filepath.Join(r.dir, "oversell")
		if err := r.build(ctx, r.cfg.Binary); err != nil {
			return err
		}
	}
	if err := r.addServers(found); err != nil {
		return err
	}
	return r.startAll(ctx)
}

// addServers takes the ports and prepares the servers.
func (r *Rig) addServers(found programs) error {
	r.addrs.Token = r.cfg.Token
	if r.cfg.MySQL {
		if err := r.addMySQL(found); err != nil {
			return err
		}
	}
	for i := range r.cfg.Redis {
		if err := r.addRedis(found, i+1); err != nil {
			return err
		}
	}
	if r.cfg.RedisReplica {
		if err := r.addRedisReplica(found); err != nil {
			return err
		}
	}
	if r.cfg.Zookeeper {
		if err := r.addZookeepers(found.zookeeper); err != nil {
			return err
		}
	}
	if r.cfg.Etcd {
		if err := r.addEtcds(found.etcd); err != nil {
			return err
		}
	}
	for i := range r.cfg.Replicas {
		if err := r.addReplica(i + 1); err != nil {
			return err
		}
	}
	if r.cfg.Nginx {
		return r.addNginx(found.nginx)
	}
	if r.cfg.Replicas > 0 {
		r.addrs.Target = r.addrs.Replicas[0]
	}
	return nil
}

// newServer takes a port and makes the server's folder.
func (r *Rig) newServer(name string, preferred int) (*Server, string, error) {
	port, err := r.ports.take(preferred)
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(r.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("rig: %w", err)
	}
	return &Server{name: name, addr: hostPort(port), rig: r}, dir, nil
}

// startAll starts the backends and nginx concurrently, then the replicas, and waits until the
// service answers a request.
func (r *Rig) startAll(ctx context.Context) error {
	began := time.Now()
	first := r.backends
	if r.nginx != nil {
		first = append(first[:len(first):len(first)], r.nginx)
	}
	if err := startServers(ctx, first); err != nil {
		return err
	}
	if err := r.startReplicas(ctx); err != nil {
		return err
	}
	if err := r.awaitService(ctx); err != nil {
		return err
	}
	r.logf("ready after %.2f s", time.Since(began).Seconds())
	return nil
}

// awaitService returns when the service is ready: each replica of a complete rig has its schema
// and its session, and nginx, which started before them, passes requests on.
func (r *Rig) awaitService(ctx context.Context) error {
	for _, replica := range r.replicas {
		if err := replica.AwaitReady(ctx); err != nil {
			return err
		}
	}
	if r.nginx != nil {
		return await(ctx, r.addrs.Target+"/healthz")
	}
	return nil
}

// await requests url until the answer is 200.
func await(ctx context.Context, url string) error {
	return awaitTrue(ctx, "the service is ready", func(ctx context.Context) error { return get(ctx, url) })
}

// awaitTrue retries until there is no error.
func awaitTrue(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		once, cancelOnce := context.WithTimeout(ctx, probeTimeout)
		err := ask(once)
		cancelOnce()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("rig: gave up waiting until %s: %w", what, err)
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

// Config returns the configuration of the rig.
func (r *Rig) Config() Config { return r.cfg }

// Addresses returns the addresses of all servers.
func (r *Rig) Addresses() Addresses { return r.addrs }

// Dir returns the scratch folder, which has a log of each server.
func (r *Rig) Dir() string { return r.dir }

// Servers returns all servers: the backends, nginx, the replicas.
func (r *Rig) Servers() []*Server {
	all := append([]*Server{}, r.backends...)
	if r.nginx != nil {
		all = append(all, r.nginx)
	}
	return append(all, r.replicas...)
}

// Server returns the server of that name: mysql, mysql-2 of a pair, redis-1, redis-1-replica,
// zookeeper, zookeeper-1 of an ensemble, etcd, etcd-1 of a cluster, nginx, replica-1.
func (r *Rig) Server(name string) (*Server, error) {
	var names []string
	for _, s := range r.Servers() {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return nil, fmt.Errorf("rig: no server %q: there are %s", name, strings.Join(names, ", "))
}

// Close stops all servers and removes their files. The replicas finish their requests, then
// nginx ends, then the backends are killed: their data are not needed any more. Close may be
// called again. After an error, nothing runs any more either.
func (r *Rig) Close() error { return r.close() }

func (r *Rig) shutDown() error {
	r.closing()
	err := r.healAll()
	err = errors.Join(err, stopServers(r.replicas))
	if r.nginx != nil {
		err = errors.Join(err, stopServers([]*Server{r.nginx}))
	}
	var killing sync.WaitGroup
	for _, s := range r.backends {
		killing.Go(s.Kill)
	}
	killing.Wait()
	for _, l := range r.links {
		l.close()
	}
	err = errors.Join(err, r.reaper.close())
	r.launcher.close()
	r.ports.release()
	// The reaper has done this, unless it was killed.
	if rest := os.RemoveAll(r.dir); rest != nil {
		err = errors.Join(err, fmt.Errorf("rig: %w", rest))
	}
	return err
}

// healAll restores the links and resumes paused servers. Otherwise a replica would wait for
// answers that never come, or not receive the signal to end.
func (r *Rig) healAll() error {
	var errs []error
	for _, l := range r.links {
		errs = append(errs, l.Restore())
	}
	for _, s := range r.Servers() {
		errs = append(errs, s.Resume())
	}
	return errors.Join(errs...)
}

// stopServers stops them concurrently and joins their errors.
func stopServers(servers []*Server) error {
	errs := make([]error, len(servers))
	var stopping sync.WaitGroup
	for i, s := range servers {
		stopping.Go(func() { errs[i] = s.Stop(context.Background()) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// logf writes a line to Config.Log.
func (r *Rig) logf(format string, args ...any) {
	if r.cfg.Log == nil {
		return
	}
	r.logging.Lock()
	defer r.logging.Unlock()
	_, _ = fmt.Fprintf(r.cfg.Log, format+"\n", args...)
}
