package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// Split parts a lab with Sentinel into two sides: the master and sentinel-1 with these replicas of the
// service, and all other servers. No command or reply passes from one side to the other, but MySQL serves
// both. Split returns when the two Sentinels of the other side have made one of their Redis the master. The
// heal makes the old master a replica, which loses what it has written since.
//
// Each server switches off the users of the other side, and ends their connections.
func (m *Masters) Split(services ...string) Fault {
	side := append([]string{"redis-master", "sentinel-1"}, services...)
	return Fault{
		Name: "split", Target: strings.Join(side, ", "),
		inject: func(ctx context.Context) (err error) {
			if m.masters, m.replicas, err = roles(ctx, m.rig); err != nil {
				return err
			}
			m.killed = m.masters[0]
			err = m.setUsers(ctx, side, "off")
			if err == nil {
				err = m.awaitReplaced(ctx)
			}
			if err == nil {
				err = rig.Await(ctx, "two Sentinels name the new master, and it has a replica", func(ctx context.Context) error {
					return m.announced(ctx, side...)
				})
			}
			if err != nil {
				return errors.Join(err, m.setUsers(context.WithoutCancel(ctx), side, "on"))
			}
			return nil
		},
		heal: func(ctx context.Context) error {
			return errors.Join(m.setUsers(ctx, side, "on"), m.awaitFollowed(ctx))
		},
	}
}

// setUsers switches users on or off (state), on each server those of the other side.
func (m *Masters) setUsers(ctx context.Context, side []string, state string) error {
	var errs []error
	all := m.rig.Servers()
	for _, s := range all {
		if !isRedis(s) || s.PID() == 0 {
			continue
		}
		errs = append(errs, withRedis(s, func(c *redis.Client) error {
			for _, party := range all {
				name := party.Name()
				if slices.Contains(side, name) == slices.Contains(side, s.Name()) ||
					!isRedis(party) && !strings.HasPrefix(name, "replica-") {
					continue
				}
				if err := c.Do(ctx, "ACL", "SETUSER", name, state).Err(); err != nil {
					return err
				}
				if state == "off" {
					if err := c.Do(ctx, "CLIENT", "KILL", "USER", name).Err(); err != nil {
						return err
					}
				}
			}
			// A fail-over makes the servers write their files, with the users of a split, which would outlast a restart.
			if isSentinel(s) {
				return c.Do(ctx, "SENTINEL", "FLUSHCONFIG").Err()
			}
			return c.ConfigRewrite(ctx).Err()
		}))
	}
	return errors.Join(errs...)
}

// settled returns the master that all Sentinels name, and the epoch in which they chose it, once they consider
// it alive, all other servers are its replicas, and no fail-over goes on.
//
// DANGER: a Sentinel names the new master before its fail-over has ended. Meanwhile, another loss of the master
// would make the old one the master again, or leave the Sentinels with two of them.
func (m *Masters) settled(ctx context.Context) (agreed string, _ error) {
	addr := ""
	for _, s := range m.rig.Servers() {
		if !isSentinel(s) || s.PID() == 0 {
			continue
		}
		var master map[string]string
		err := withRedis(s, func(c *redis.Client) (err error) {
			master, err = monitored(ctx, c)
			return err
		})
		if err != nil {
			return "", err
		}
		addr = net.JoinHostPort(master["ip"], master["port"])
		its := addr + " of epoch " + master["config-epoch"]
		if agreed = cmp.Or(agreed, its); its != agreed || master["flags"] != "master" {
			return "", fmt.Errorf("%s has the master %s (%s), another Sentinel has %s", s.Name(), its, master["flags"], agreed)
		}
	}
	for _, s := range slices.Concat(m.masters, m.replicas) {
		line := "master_link_status:up" // a Sentinel lets a second master be for ten seconds
		if s.Addr() == addr {
			line = "state=online"
		}
		if err := hasReplicationLine(ctx, s, line); err != nil {
			return "", fmt.Errorf("%s: %w", s.Name(), err)
		}
	}
	return agreed, nil
}

// monitored returns what a Sentinel knows of the master: its ip, port and flags, among others.
func monitored(ctx context.Context, sentinel *redis.Client) (map[string]string, error) {
	master := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", rig.SentinelMaster)
	err := sentinel.Process(ctx, master)
	return master.Val(), err
}

// isRedis reports whether a server is a Redis of the topology, or a Sentinel.
func isRedis(s *rig.Server) bool { return isSentinel(s) || rig.IsOfTopology(s.Name()) }

func isSentinel(s *rig.Server) bool { return strings.HasPrefix(s.Name(), "sentinel-") }

// announced returns nil when all Sentinels but these name a new master, which has a replica.
func (m *Masters) announced(ctx context.Context, but ...string) error {
	var errs []error
	for _, s := range m.rig.Servers() {
		if !isSentinel(s) || slices.Contains(but, s.Name()) {
			continue
		}
		errs = append(errs, withRedis(s, func(c *redis.Client) error {
			addr, err := masterAddr(ctx, c)
			if err != nil {
				return err
			}
			for _, replica := range m.replicas {
				if replica.Addr() == addr { // with min-replicas-to-write, it needs a replica of its own
					return hasReplicationLine(ctx, replica, "state=online")
				}
			}
			return errors.New("it names " + addr)
		}))
	}
	return errors.Join(errs...)
}

// masterAddr returns the address of the master that a Sentinel names.
func masterAddr(ctx context.Context, sentinel *redis.Client) (string, error) {
	found, err := sentinel.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", rig.SentinelMaster).StringSlice()
	if err != nil {
		return "", err
	}
	return strings.Join(found, ":"), nil
}
