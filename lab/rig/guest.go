package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"oversell/lab/backend"
)

// enter creates a database and a folder of ZooKeeper for this rig in the servers of Config.Host.
func (r *Rig) enter(ctx context.Context) error {
	host, name := r.cfg.Host, "oversell_"+strings.ToLower(rand.Text()[:12])
	if host == nil {
		return nil
	}
	if r.cfg.MySQL {
		server, own, found := strings.Cut(host.MySQL, ")/")
		if !found {
			return errors.New("rig: the host has no MySQL")
		}
		if err := backend.ExecuteMySQL(ctx, host.MySQL, "CREATE DATABASE "+name); err != nil {
			return fmt.Errorf("rig: a database of the host: %w", err)
		}
		r.addrs.MySQL = server + ")/" + name + strings.TrimPrefix(own, "oversell")
	}
	if r.cfg.Zookeeper > 0 {
		if len(host.Zookeeper) == 0 {
			return errors.New("rig: the host has no ZooKeeper")
		}
		err := backend.WithZooKeeper(host.Zookeeper, func(conn *zk.Conn) error {
			_, err := conn.Create("/"+name, nil, 0, zk.WorldACL(zk.PermAll))
			return err
		})
		if err != nil {
			return fmt.Errorf("rig: a folder of the host's ZooKeeper: %w", err)
		}
		r.addrs.Zookeeper = []string{strings.Join(host.Zookeeper, ",") + "/" + name}
	}
	return nil
}
