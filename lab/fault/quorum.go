package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"oversell/lab/rig"
)

// LoseQuorum waits until the replicas have all writes, and kills all Sentinels but one, then the master. The
// Sentinel that is left notices the loss of the master, but cannot replace it alone. The heal starts the
// Sentinels, waits until they have made a replica the master, and then starts the old master, which becomes
// a replica.
//
// DANGER: a Redis without persistence starts empty. If the old master started first, it would be the master
// of replicas that delete their data.
func (m *Masters) LoseQuorum(left string) Fault {
	return Fault{
		Name: "quorum-loss", Target: "sentinel, redis",
		inject: func(ctx context.Context) (err error) {
			if err := m.AwaitReplicated(ctx); err != nil {
				return err
			}
			m.killed = m.masters[0]
			sentinel, err := m.rig.Server(left)
			if err != nil {
				return err
			}
			for _, s := range m.rig.Servers() {
				if isSentinel(s) && s != sentinel {
					s.Kill()
				}
			}
			m.killed.Kill()
			return rig.Await(ctx, left+" notices that the master and the other Sentinels are down", func(ctx context.Context) error {
				return withRedis(sentinel, func(c *redis.Client) error { return alone(ctx, c) })
			})
		},
		heal: func(ctx context.Context) error {
			var starts errgroup.Group // each is ready when all of them are
			for _, s := range m.rig.Servers() {
				if isSentinel(s) {
					starts.Go(func() error { return s.BringUp(ctx) })
				}
			}
			err := starts.Wait()
			if err == nil {
				err = rig.Await(ctx, "all Sentinels name the new master, and it has a replica", func(ctx context.Context) error { return m.announced(ctx) })
			}
			if err != nil {
				return err
			}
			return errors.Join(m.killed.BringUp(ctx), m.awaitFollowed(ctx))
		},
	}
}

// AwaitReplicated returns nil when the replicas of a lab with Sentinel have all that the master has written.
func (m *Masters) AwaitReplicated(ctx context.Context) (err error) {
	if m.masters, m.replicas, err = roles(ctx, m.rig); err != nil {
		return err
	}
	return withRedis(m.masters[0], func(c *redis.Client) error { return replicated(ctx, c, len(m.replicas)) })
}

// replicated returns nil when all replicas have what the master has written so far.
func replicated(ctx context.Context, master *redis.Client, replicas int) error {
	c := master.Conn()
	defer func() { _ = c.Close() }()
	// WAIT waits for the writes of its own connection, and for all that are earlier.
	if err := c.Set(ctx, "oversell:replicated", "", 0).Err(); err != nil {
		return err
	}
	n, err := c.Wait(ctx, replicas, syncTimeout).Result()
	if err == nil && int(n) < replicas {
		err = fmt.Errorf("only %d of %d replicas have the last write", n, replicas)
	}
	return err
}

// alone returns nil if a Sentinel considers the master down, and has no majority to replace it.
func alone(ctx context.Context, sentinel *redis.Client) error {
	master, err := monitored(ctx, sentinel)
	if err != nil {
		return err
	}
	if flags := master["flags"]; !strings.Contains(flags, "s_down") {
		return errors.New("it considers the master alive: " + flags)
	}
	err = sentinel.Do(ctx, "SENTINEL", "CKQUORUM", rig.SentinelMaster).Err()
	if err == nil {
		return errors.New("it has a quorum")
	}
	if strings.Contains(err.Error(), "NOQUORUM") {
		return nil
	}
	return err
}
