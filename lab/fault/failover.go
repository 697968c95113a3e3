package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/backend"
	"oversell/lab/rig"
)

// syncTimeout limits the copy of one Redis's data to another. A few keys need far less.
const syncTimeout = 30 * time.Second

const masterName, replicaName = "redis-1", "redis-1-replica"

// Failover replaces redis-1 by its replica, as an operator or Sentinel does. The master is killed,
// the replica is promoted, and the clients' address leads to the replica. Writes that the replica
// has not received, such as a lock, are lost. Heal makes redis-1 the master again, with the data of
// the promoted replica. Writes during the change may be lost. The rig needs Config.RedisReplica and
// Proxied.
//
// Replication takes less than a millisecond here. To lose a lock, cut the link first, let a
// client acquire the lock, then fail over:
//
//	link, err := lab.Link("redis-1-replica", "redis-1")
//	_, err = fault.Cut(link).Inject(ctx)
//	…
//	heal, err := fault.Failover(lab).Inject(ctx)
func Failover(r *rig.Rig) Fault {
	p := new(pair)
	return Fault{
		Name:   "failover",
		Target: masterName,
		inject: func(ctx context.Context) (err error) {
			if *p, err = findPair(r); err == nil {
				if err = p.failOver(ctx); err != nil {
					err = errors.Join(err, p.failBack(context.WithoutCancel(ctx)))
				}
			}
			if err != nil {
				return fmt.Errorf("failover: %w", err)
			}
			return nil
		},
		heal: p.failBack,
		landed: func(ctx context.Context) error {
			if p.replica == nil {
				return errors.New("no replica was promoted")
			}
			return hasReplicationLine(ctx, p.replica, masterLine)
		},
	}
}

type pair struct {
	master, replica *rig.Server
	replication     *rig.Link
	clients         []*rig.Link
}

func findPair(r *rig.Rig) (p pair, err error) {
	var errs [3]error
	p.master, errs[0] = r.Server(masterName)
	p.replica, errs[1] = r.Server(replicaName)
	p.replication, errs[2] = r.Link(replicaName, masterName)
	if err := errors.Join(errs[:]...); err != nil {
		return p, err
	}
	for _, l := range r.Links() {
		if l.To() == masterName && l != p.replication {
			p.clients = append(p.clients, l)
		}
	}
	if len(p.clients) == 0 {
		return p, errors.New("no replica has a link to redis-1: start the rig with Config.Proxied")
	}
	return p, nil
}

func (p *pair) failOver(ctx context.Context) error {
	// Cut the link before the kill, because the master would otherwise send its last writes.
	if err := p.replication.Cut(); err != nil {
		return err
	}
	p.master.Kill()
	return p.lead(ctx, p.replica)
}

// failBack makes redis-1 the master again. It also works after an incomplete failover.
func (p *pair) failBack(ctx context.Context) error {
	if err := errors.Join(p.master.BringUp(ctx), p.replication.Restore()); err != nil {
		return err
	}
	promoted, err := isMaster(ctx, p.replica)
	if err != nil {
		return err
	}
	if promoted { // the restarted master has no data
		if err := follow(ctx, p.master, p.replica.Addr()); err != nil {
			return err
		}
	}
	if err := p.lead(ctx, p.master); err != nil {
		return err
	}
	return follow(ctx, p.replica, p.replication.Addr())
}

func (p *pair) lead(ctx context.Context, master *rig.Server) error {
	if err := withRedis(master, func(c *redis.Client) error { return c.ReplicaOf(ctx, "NO", "ONE").Err() }); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	for _, l := range p.clients {
		if err := l.SetUpstream(master.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// follow makes s a replica of the server at master, and returns when s has the master's data.
func follow(ctx context.Context, s *rig.Server, master string) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return err
	}
	if err := withRedis(s, func(c *redis.Client) error { return c.ReplicaOf(ctx, host, port).Err() }); err != nil {
		return fmt.Errorf("follow %s: %w", master, err)
	}
	return rig.Await(ctx, s.Name()+" has the data of "+master, func(ctx context.Context) error {
		return hasReplicationLine(ctx, s, "master_link_status:up")
	})
}

// withRedis calls use with a direct connection to the server, not over a link.
func withRedis(s *rig.Server, use func(*redis.Client) error) error {
	if err := backend.WithRedis(s.RedisURL(), use); err != nil {
		return fmt.Errorf("%s: %w", s.Name(), err)
	}
	return nil
}
