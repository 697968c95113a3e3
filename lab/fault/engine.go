package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// Masters are the masters and replicas of a lab with Sentinel or with a cluster of Redis. The servers
// themselves replace a master that dies.
type Masters struct {
	rig               *rig.Rig
	masters, replicas []*rig.Server // at the time of Unreplicated or Observe
	killed            *rig.Server
	before            map[string]stored // at the time of Observe
}

// MastersOf returns those of a rig, which needs Config.RedisTopology.
func MastersOf(r *rig.Rig) *Masters { return &Masters{rig: r} }

// Unreplicated keeps the replicas from what their masters write from now on: it stops the replicas, and
// ends the connections of replication. A replica that is merely stopped would read the writes of this time
// from its connection when it goes on.
func (m *Masters) Unreplicated() Fault {
	return Fault{
		Name: "unreplicated", Target: "redis",
		inject: func(ctx context.Context) (err error) {
			if m.masters, m.replicas, err = roles(ctx, m.rig); err != nil {
				return err
			}
			for _, s := range m.replicas {
				err = errors.Join(err, s.Pause())
			}
			for _, s := range m.masters {
				err = errors.Join(err, withRedis(s, func(c *redis.Client) error {
					return c.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err()
				}))
			}
			if err != nil {
				return errors.Join(err, m.resume(ctx))
			}
			return nil
		},
		heal: m.resume,
	}
}

func (m *Masters) resume(context.Context) error {
	var errs []error
	for _, s := range m.replicas {
		errs = append(errs, s.Resume())
	}
	return errors.Join(errs...)
}

// Replace kills the master that has the lock (see Observe), resumes the replicas, and waits until the servers
// themselves have made one of them the master: three Sentinels, or the other masters of a cluster. What the
// master has written since Unreplicated is lost; without Unreplicated, some of its last writes may be. The
// heal starts the killed server, which becomes a replica.
func (m *Masters) Replace() Fault {
	return Fault{
		Name: "failover", Target: "redis",
		inject: func(ctx context.Context) (err error) {
			if _, m.killed, err = m.lock(ctx); err != nil {
				return err
			}
			m.killed.Kill()
			if err := m.resume(ctx); err != nil {
				return err
			}
			return m.awaitReplaced(ctx)
		},
		heal: func(ctx context.Context) error {
			return errors.Join(m.killed.BringUp(ctx), m.awaitFollowed(ctx))
		},
	}
}

func (m *Masters) awaitReplaced(ctx context.Context) error {
	return rig.Await(ctx, "a replica of "+m.killed.Name()+" becomes the master", m.replaced)
}

func (m *Masters) awaitFollowed(ctx context.Context) error {
	if err := rig.Await(ctx, m.killed.Name()+" follows the new master", m.followed); err != nil || len(m.masters) > 1 {
		return err // a cluster has no Sentinels
	}
	agreed, since := "", time.Now()
	return rig.Await(ctx, "all Sentinels agree, and no fail-over begins", func(ctx context.Context) error {
		now, err := m.settled(ctx)
		if err != nil || now != agreed {
			agreed, since = now, time.Now()
		}
		if err == nil && time.Since(since) < quiet {
			err = errors.New("they agree only since a moment ago")
		}
		return err
	})
}

// quiet is the time without a fail-over after which none begins. A Sentinel that has just started may still have
// an old view, by which it replaces the master once more: it needs down-after-milliseconds for that, one second,
// and as long for the votes.
const quiet = 3 * time.Second

// followed returns nil when the killed server is a replica again. A cluster sees to that. A Sentinel waits
// for ten seconds, so the server gets the same command earlier.
func (m *Masters) followed(ctx context.Context) error {
	if len(m.masters) > 1 {
		return hasReplicationLine(ctx, m.killed, "master_link_status:up")
	}
	for _, s := range m.replicas {
		if hasReplicationLine(ctx, s, masterLine) == nil {
			return follow(ctx, m.killed, s.Addr())
		}
	}
	return errors.New("there is no new master")
}

// roles returns the servers of the topology that run, by their roles.
func roles(ctx context.Context, r *rig.Rig) (masters, replicas []*rig.Server, err error) {
	for _, s := range r.Servers() {
		if !rig.IsOfTopology(s.Name()) || s.PID() == 0 {
			continue
		}
		master, err := isMaster(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if master {
			masters = append(masters, s)
		} else {
			replicas = append(replicas, s)
		}
	}
	if len(masters) == 0 || len(replicas) == 0 {
		err = errors.New("the lab has no Sentinel and no cluster of Redis: start the rig with Config.RedisTopology")
	}
	return masters, replicas, err
}

// masterLine is what a master reports of its role.
const masterLine = "role:master"

// errNoLine means that a server answers, and does not report this of its replication.
var errNoLine = errors.New("INFO replication has no line")

func hasReplicationLine(ctx context.Context, s *rig.Server, line string) error {
	return withRedis(s, func(c *redis.Client) error {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, line) {
			err = fmt.Errorf("%w %s", errNoLine, line)
		}
		return err
	})
}

func isMaster(ctx context.Context, s *rig.Server) (bool, error) {
	err := hasReplicationLine(ctx, s, masterLine)
	if errors.Is(err, errNoLine) {
		return false, nil
	}
	return err == nil, err
}

// stored is what a master has at a key.
type stored struct {
	on      *rig.Server
	value   string // without the time of its expiry
	expires bool
}

// Observe notes what the masters have before a lock is acquired. What they have in addition or in another form later
// is data of this lock, whatever the names of its keys are. Without Observe, that is all they have.
func (m *Masters) Observe(ctx context.Context) (err error) {
	m.before, err = m.data(ctx)
	return err
}

func (m *Masters) data(ctx context.Context) (all map[string]stored, err error) {
	if m.masters == nil {
		if m.masters, m.replicas, err = roles(ctx, m.rig); err != nil {
			return nil, err
		}
	}
	all = map[string]stored{}
	for _, s := range m.masters {
		err := withRedis(s, func(c *redis.Client) error {
			keys, err := c.Keys(ctx, "*").Result()
			for _, key := range keys {
				value, gone := c.Dump(ctx, key).Result()
				left, failed := c.PTTL(ctx, key).Result()
				if err = errors.Join(err, failed); gone == nil {
					all[key] = stored{s, value, left > 0}
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lock returns a key of the lock that was acquired since Observe, and its master. A counter of fences may be
// elsewhere, but does not expire.
func (m *Masters) lock(ctx context.Context) (key string, on *rig.Server, err error) {
	all, err := m.data(ctx)
	for name, s := range all {
		if s.value != m.before[name].value && (on == nil || s.expires && !all[key].expires || s.expires == all[key].expires && name < key) {
			key, on = name, s.on
		}
	}
	if err == nil && on == nil {
		err = errors.New("no master has a key of the lock")
	}
	return key, on, err
}

// replaced returns nil when one of the replicas is a master, and all nodes of a cluster agree that each
// slot has a master.
func (m *Masters) replaced(ctx context.Context) error {
	var errs []error
	promoted := false
	for _, s := range m.replicas {
		promoted = promoted || hasReplicationLine(ctx, s, masterLine) == nil
		if len(m.masters) > 1 {
			errs = append(errs, withRedis(s, func(c *redis.Client) error {
				info, err := c.ClusterInfo(ctx).Result()
				if err == nil && !strings.Contains(info, "cluster_state:ok") {
					err = errors.New("the state of the cluster is not ok")
				}
				return err
			}))
		}
	}
	if !promoted {
		errs = append(errs, errors.New("all of them are replicas"))
	}
	return errors.Join(errs...)
}
