package fault

import (
	"context"
	"fmt"

	"oversell/lab/backend"
	"oversell/lab/rig"
)

// DeleteLocks deletes the data of all locks in a service: redis, zookeeper, etcd, mysql or postgres. It uses
// its own connections, like an operator with the server's command line. All Redis servers lose all
// keys, ZooKeeper loses the nodes of all sessions, and etcd all keys. MySQL and PostgreSQL lose the
// rows of all lock tables. If they have no rows, all connections end, and with them the locks of sessions and
// transactions. Nothing restores the data, so Heal does nothing.
func DeleteLocks(r *rig.Rig, service string) Fault {
	deleted := int64(0)
	return Fault{
		Name:   "locks deleted",
		Target: service,
		inject: func(ctx context.Context) (err error) {
			if deleted, err = deleteLocks(ctx, r.Addresses(), service); err != nil {
				return fmt.Errorf("delete the locks: %w", err)
			}
			return nil
		},
		heal:   func(context.Context) error { return nil },
		landed: unless(func() bool { return deleted > 0 }, "it had no data of a lock"),
	}
}

// deleteLocks returns how many keys, nodes, rows or connections it has deleted.
func deleteLocks(ctx context.Context, at rig.Addresses, service string) (deleted int64, err error) {
	switch service {
	case "redis":
		for _, url := range at.Redis {
			keys, err := backend.FlushRedis(ctx, url)
			if err != nil {
				return deleted, err
			}
			deleted += keys
		}
		return deleted, nil
	case "zookeeper":
		return backend.DeleteEphemeralNodes(at.Zookeeper)
	case "etcd":
		return backend.DeleteEtcdKeys(ctx, at.Etcd[0])
	case "mysql":
		if rows, err := backend.DeleteMySQLLocks(ctx, at.MySQL); err != nil || rows > 0 {
			return rows, err
		}
		return backend.KillMySQLConnections(ctx, at.MySQL)
	case "postgres":
		if rows, err := backend.DeletePostgresRows(ctx, at.Postgres); err != nil || rows > 0 {
			return rows, err
		}
		return backend.EndPostgresSessions(ctx, at.Postgres)
	}
	return 0, fmt.Errorf("no service %q", service)
}
