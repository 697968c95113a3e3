package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oversell/lab/backend"
)

// Database is the number of servers that store the stock, and their way of replication.
type Database string

// The databases. A pair is node A, the server mysql, and node B, mysql-2. With Galera and
// TwoMasters, odd replicas write to A and even replicas to B. No node of a pair can be started again
// after its end.
const (
	// OneServer is the setup that every lock of the tutorial assumes.
	OneServer Database = ""
	// Galera is two nodes of MariaDB that certify every transaction at its commit. If two transactions
	// wrote the same row, one is rolled back. Row locks are local to their node.
	Galera Database = "galera"
	// TwoMasters is two MariaDB servers that replicate to each other after the commit, without
	// conflict detection: the last write wins.
	TwoMasters Database = "two-masters"
	// DelayedReads is a read-write split: all replicas write to A and read the stock at B, which
	// replicates A asynchronously.
	DelayedReads Database = "delayed-reads"
	// GaleraCluster is three nodes of Galera, mysql, mysql-2 and mysql-3, and the proxy haproxy, through which
	// all replicas write at one node. A node can be started again while the other two run.
	GaleraCluster Database = "galera-cluster"
)

func (d Database) isPair() bool { return d == Galera || d == TwoMasters || d == DelayedReads }

func (d Database) isGalera() bool { return d == Galera || d == GaleraCluster }

func (r *Rig) addPair() {
	a, b := r.addDatabase("mysql"), r.addDatabase("mysql-2")
	if r.cfg.Database == Galera {
		r.joinGalera(a, b)
		return
	}
	a.replicate(1)
	b.replicate(2)
	b.follow(a)
	if r.cfg.Database == TwoMasters {
		a.follow(b)
	} else {
		r.addrs.Reads = r.secrets.mysql(r.secrets.name, b.addr)
	}
}

// replicate makes database n of a pair (1 or 2) log its writes for the other database.
func (d *database) replicate(n int) {
	d.more = []string{
		"--log-bin=binlog", "--binlog-format=ROW", "--relay-log=relay", "--skip-slave-start",
		fmt.Sprintf("--server-id=%d", n), fmt.Sprintf("--gtid-domain-id=%d", n),
		// The ids that the two servers generate never collide.
		"--auto-increment-increment=2", fmt.Sprintf("--auto-increment-offset=%d", n),
		// Without this mode, replication would end when both servers insert the row of the same lock key.
		"--slave-exec-mode=IDEMPOTENT",
	}
	d.setUp = "SET SESSION sql_log_bin = 0;\n" + d.setUp // the setup is not replicated
}

func (d *database) follow(from *database) {
	d.setUp += fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1;\n",
		loopback, from.port(), adminUser, d.rig.secrets.admin) + "START SLAVE;\n"
}

// startReplicas starts the replicas of a pair in sequence: their schema migrations would conflict.
func (r *Rig) startReplicas(ctx context.Context) error {
	if !r.cfg.Database.isPair() {
		return startServers(ctx, r.replicas)
	}
	for _, s := range r.replicas {
		if err := r.AwaitEven(ctx); err != nil {
			return err
		}
		if err := s.BringUp(ctx); err != nil {
			return err
		}
	}
	return r.AwaitEven(ctx)
}

func (r *Rig) mysqlOf(i int) string {
	if d := r.cfg.Database; (d == Galera || d == TwoMasters) && i%2 == 0 {
		return r.secrets.mysql(r.secrets.name, r.databases[1].addr)
	}
	return r.addrs.MySQL
}

// These queries return an equal text when both nodes have applied the same writes.
const (
	galeraPosition = `SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) FROM information_schema.global_status
		WHERE variable_name IN ('wsrep_cluster_size', 'wsrep_cluster_state_uuid', 'wsrep_last_committed', 'wsrep_local_state_comment')`
	// gtidPosition is not the position in the binary log, which ignores a change without effect.
	gtidPosition = "SELECT @@gtid_current_pos"
)

// AwaitEven returns when a pair's nodes have applied each other's writes, or at once without a
// pair. After a minute it gives up: a client still writes, or replication has ended (see the logs).
func (r *Rig) AwaitEven(ctx context.Context) error {
	if !r.cfg.Database.isPair() {
		return nil
	}
	query := gtidPosition
	if r.cfg.Database == Galera {
		query = galeraPosition
	}
	return Await(ctx, "both databases have the same history", func(ctx context.Context) error {
		var at [2]string
		for i, node := range r.databases {
			position, err := backend.MySQLValue(ctx, node.AdminDSN(), query)
			if err != nil {
				return err
			}
			parts := strings.Split(position, ",") // in no order
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
	var followers []*Server
	switch r.cfg.Database {
	case TwoMasters:
		followers = r.databases
	case DelayedReads:
		followers = r.databases[1:]
	default:
		return nil, errors.New("rig: cannot pause the replication: this rig has neither two masters nor a follower")
	}
	execute := func(ctx context.Context, statement string) error {
		for _, node := range followers {
			if err := backend.ExecuteMySQL(ctx, node.AdminDSN(), statement); err != nil {
				return fmt.Errorf("rig: %s: %w", statement, err)
			}
		}
		return nil
	}
	release = func(ctx context.Context) error { return execute(ctx, "START SLAVE SQL_THREAD") }
	if err := execute(ctx, "STOP SLAVE SQL_THREAD"); err != nil {
		return nil, errors.Join(err, release(context.WithoutCancel(ctx)))
	}
	return release, nil
}
