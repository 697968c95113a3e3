package rig

import (
	"context"
	"database/sql"
	_ "embed" // for the script
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Database says how many servers store the stock, and how they replicate.
type Database string

// The databases. A pair is node A, the server mysql, and node B, mysql-2. In a cluster, odd
// replicas write to A and even ones to B. No node can be started again after its end.
const (
	// OneServer is the setup that every lock of the tutorial assumes.
	OneServer Database = ""
	// Galera is two nodes of MariaDB that certify every transaction at its commit: of two that
	// wrote the same row, one is rolled back. Row locks are local to their node.
	Galera Database = "galera"
	// TwoMasters is two MariaDB servers that replicate to each other after the commit, without
	// conflict detection: the last write wins.
	TwoMasters Database = "two-masters"
	// DelayedReads is a read-write split: all replicas write to A and read the stock at B, which
	// replicates A asynchronously.
	DelayedReads Database = "delayed-reads"
)

// isPair reports whether there is a node B.
func (d Database) isPair() bool { return d == Galera || d == TwoMasters || d == DelayedReads }

// nodeB is the name of the second server of a pair.
const nodeB = "mysql-2"

// addPair adds both nodes. Galera's second begins with a copy of the first.
func (r *Rig) addPair(found programs) error {
	a, err := r.addDatabase(found, "mysql")
	if err != nil {
		return err
	}
	b, err := r.addDatabase(found, nodeB)
	if err != nil {
		return err
	}
	switch r.cfg.Database {
	case TwoMasters:
		a.replicate(1)
		b.replicate(2)
		a.follow(b)
		b.follow(a)
	case DelayedReads:
		a.replicate(1)
		b.replicate(2)
		b.follow(a)
		r.addrs.Reads = r.mysqlB
	default:
		return r.joinGalera(a, b)
	}
	return nil
}

// replicate makes a database log its writes, as the n-th of two that may both write.
func (d *database) replicate(n int) {
	d.args = []string{
		"--log-bin=binlog", "--binlog-format=ROW", "--relay-log=relay", "--skip-slave-start",
		fmt.Sprintf("--server-id=%d", n), fmt.Sprintf("--gtid-domain-id=%d", n),
		// The generated ids of both never collide.
		"--auto-increment-increment=2", fmt.Sprintf("--auto-increment-offset=%d", n),
		// Replication must not end at a row that exists already, or no longer. Otherwise the
		// first two requests that lock the same key would end it.
		"--slave-exec-mode=IDEMPOTENT",
	}
	d.setUp = "SET SESSION sql_log_bin = 0;\n" + d.setUp // not replicated
}

// follow makes a database replicate another one.
func (d *database) follow(from *database) {
	d.setUp += fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1;\n", loopback, from.port, adminUser, d.server.rig.secrets.admin) +
		"START SLAVE;\n"
}

//go:embed wsrep_sst_copy
var galeraCopy []byte

// joinGalera makes a cluster of two databases.
func (r *Rig) joinGalera(a, b *database) error {
	scripts := filepath.Join(r.dir, "galera")
	if err := os.Mkdir(scripts, 0o700); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	if err := os.WriteFile(filepath.Join(scripts, "wsrep_sst_copy"), galeraCopy, 0o700); err != nil { //nolint:gosec // a script
		return fmt.Errorf("rig: %w", err)
	}
	conf := filepath.Join(scripts, "galera.cnf")
	if err := os.WriteFile(conf, []byte("[mysqld]\nwsrep-cluster-name="+r.secrets.galera+"\n"), 0o600); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	env := []string{
		"PATH=" + scripts + string(os.PathListSeparator) + os.Getenv("PATH"),
		"COPY_TO=" + filepath.Join(b.dir, "data"), "COPIED=" + filepath.Join(scripts, "copied"),
	}
	first := ""
	for _, d := range []*database{a, b} {
		group, err := r.ports.take(0)
		if err != nil {
			return err
		}
		missed, err := r.ports.take(0)
		if err != nil {
			return err
		}
		addr := hostPort(group)
		// Otherwise any user's node could join, and its statements are executed on all nodes:
		// it could create a user that may write files.
		d.conf, d.env = conf, env
		d.args = []string{
			"--wsrep-on=ON", "--wsrep-provider=" + d.galera, "--wsrep-sst-method=copy",
			"--wsrep-cluster-address=gcomm://" + first, "--wsrep-node-address=" + addr,
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", // it works with no others
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;gcache.size=16M", addr, hostPort(missed)),
		}
		first = addr
	}
	b.setUp = "" // comes with the copy, as all its tables do
	b.server.prepare = func(ctx context.Context) error {
		if err := os.Mkdir(filepath.Join(b.dir, "data"), 0o700); err != nil {
			return fmt.Errorf("rig: %w", err)
		}
		return awaitTrue(ctx, "the first node serves", func(ctx context.Context) error { return a.server.probe(ctx) })
	}
	return nil
}

// startReplicas starts them concurrently. Those of a pair start one after the other: concurrent
// schema migrations on two nodes would conflict.
func (r *Rig) startReplicas(ctx context.Context) error {
	if !r.cfg.Database.isPair() {
		return startServers(ctx, r.replicas)
	}
	for _, s := range r.replicas {
		if err := r.AwaitEven(ctx); err != nil {
			return err
		}
		if err := startServers(ctx, []*Server{s}); err != nil {
			return err
		}
		if err := s.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return r.AwaitEven(ctx)
}

// mysqlOf is the data source name of the database that replica-i writes to.
func (r *Rig) mysqlOf(i int) string {
	if r.cfg.Database.isPair() && r.cfg.Database != DelayedReads && i%2 == 0 {
		return r.mysqlB
	}
	return r.addrs.MySQL
}

// What both nodes have applied, as text that is equal on both as soon as it is the same.
const (
	galeraPosition = `SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) FROM information_schema.global_status
		WHERE variable_name IN ('wsrep_cluster_size', 'wsrep_cluster_state_uuid', 'wsrep_last_committed', 'wsrep_local_state_comment')`
	// Not the position in the binary log: a change without effect is not in it.
	gtidPosition = "SELECT @@gtid_current_pos"
)

// AwaitEven returns when both nodes of a pair have applied each other's writes; without a
// pair, at once. It gives up after a minute: then a client still writes, or replication has
// ended, and the logs of the servers say why.
func (r *Rig) AwaitEven(ctx context.Context) error {
	if !r.cfg.Database.isPair() {
		return nil
	}
	nodes, closeAll, err := r.nodes()
	if err != nil {
		return err
	}
	defer closeAll()
	query := gtidPosition
	if r.cfg.Database == Galera {
		query = galeraPosition
	}
	return awaitTrue(ctx, "both databases have the same history", func(ctx context.Context) error {
		var at [2]string
		for i, node := range nodes {
			if err := node.QueryRowContext(ctx, query).Scan(&at[i]); err != nil {
				return err
			}
			parts := strings.Split(at[i], ",") // in no order
			slices.Sort(parts)
			at[i] = strings.Join(parts, ",")
		}
		if at[0] != at[1] {
			return fmt.Errorf("node A is at %s, node B at %s", at[0], at[1])
		}
		return nil
	})
}

// HoldReplication stops two masters, or the follower, from applying writes until release is
// called, as a long lag does. Galera has no such lag.
func (r *Rig) HoldReplication(ctx context.Context) (release func(context.Context) error, err error) {
	if r.cfg.Database != TwoMasters && r.cfg.Database != DelayedReads {
		return nil, errors.New("rig: only two masters, or a follower, have a replication to hold")
	}
	tell := func(ctx context.Context, statement string) error {
		nodes, closeAll, err := r.nodes()
		if err != nil {
			return err
		}
		defer closeAll()
		if r.cfg.Database == DelayedReads {
			nodes = nodes[1:]
		}
		for _, node := range nodes {
			if _, err := node.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("rig: %s: %w", statement, err)
			}
		}
		return nil
	}
	release = func(ctx context.Context) error { return tell(ctx, "START SLAVE SQL_THREAD") }
	if err := tell(ctx, "STOP SLAVE SQL_THREAD"); err != nil {
		return nil, errors.Join(err, release(context.WithoutCancel(ctx)))
	}
	return release, nil
}

// nodes opens connections of root to both nodes of a pair.
func (r *Rig) nodes() (nodes []*sql.DB, closeAll func(), err error) {
	closeAll = func() {
		for _, node := range nodes {
			_ = node.Close()
		}
	}
	for _, name := range []string{"mysql", nodeB} {
		server, err := r.Server(name)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		node, err := sql.Open("mysql", r.secrets.mysql(adminUser, server.addr))
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("rig: %w", err)
		}
		nodes = append(nodes, node)
	}
	return nodes, closeAll, nil
}

// findGalera looks for Galera's library where distributions put it.
func findGalera(patterns ...string) (string, error) {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("rig: libgalera_smm.so, of Debian's package galera-4: %w", ErrMissing)
}

// galeraPlaces is where Galera's library is: with a MariaDB that was unpacked, or where
// distributions put it.
func galeraPlaces(mariadbd string) []string {
	if path, err := filepath.EvalSymlinks(mariadbd); err == nil {
		mariadbd = path
	}
	unpacked := filepath.Join(filepath.Dir(mariadbd), "..", "lib", "galera", "libgalera_smm.so")
	return []string{unpacked, "/usr/lib/galera/libgalera_smm.so", "/usr/lib*/galera-4/libgalera_smm.so", "/usr/lib*/libgalera_smm.so"}
}
