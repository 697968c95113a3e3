package fault

import (
	"context"
	"fmt"

	"oversell/lab/backend"
	"oversell/lab/rig"
)

// DeleteLocks deletes the data of all locks in a service: redis, zookeeper, etcd or mysql. It uses
// its own connections, like an operator with the server's command line. All Redis servers lose all
// keys, ZooKeeper loses the nodes of all sessions, and etcd all keys. MySQL loses the rows of all lock
// tables. If they have no rows, MySQL ends all connections, and with them the locks of sessions and
// transactions. Nothing restores the data, so Heal does nothing.
func DeleteLocks(r *rig.Rig, service string) Fault {
	return Fault{
		Name:   "locks deleted",
		Target: service,
		inject: func(ctx context.Context) error {
			if err := deleteLocks(ctx, r.Addresses(), service); err != nil {
				return fmt.Errorf("delete the locks: %w", err)
			}
			return nil
		},
		heal: func(context.Context) error { return nil },
	}
}

func deleteLocks(ctx context.Context, at rig.Addresses, service string) error {
	switch service {
	case "redis":
		for _, url := range at.Redis {
			if err := backend.FlushRedis(ctx, url); err != nil {
				return err
			}
		}
		return nil
	case "zookeeper":
		client, err := backend.OpenZooKeeper(at.Zookeeper)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.DeleteEphemeral()
	case "etcd":
		return backend.DeleteEtcdKeys(ctx, at.Etcd[0])
	case "mysql":
		if rows, err := backend.DeleteMySQLLocks(ctx, at.MySQL); err != nil || rows > 0 {
			return err
		}
		return backend.KillMySQLConnections(ctx, at.MySQL)
	}
	return fmt.Errorf("no service %q", service)
}
