package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// syncTimeout limits the time in which a Redis copies the data of another. A few keys need
// far less.
const syncTimeout = 30 * time.Second

// Failover replaces redis-1 by its replica, as an operator or Sentinel does: the master dies,
// the replica is promoted, and the clients' address leads to it. Writes that the replica has
// not received are lost, such as a lock. The rig needs Config.RedisReplica and Proxied.
//
// Replication takes less than a millisecond here. To lose a lock, cut the link first, let a
// client acquire the lock, then fail over:
//
//	link, err := lab.Link("redis-1-replica", "redis-1")
//	_, err = fault.Cut{Link: link}.Inject(ctx)
//	…
//	heal, err := fault.Failover{Rig: lab}.Inject(ctx)
type Failover struct{ Rig *rig.Rig }

const masterName, replicaName = "redis-1", "redis-1-replica"

// Name implements [Fault].
func (Failover) Name() string { return "failover" }

// Target implements [Fault].
func (Failover) Target() string { return masterName }

// Inject implements [Fault]. Heal makes redis-1 the master again, with the data of the promoted
// one. Writes during the change may be lost.
func (f Failover) Inject(ctx context.Context) (Heal, error) {
	p, err := f.pair()
	if err != nil {
		return nil, err
	}
	heal := once(p.failBack)
	if err := p.failOver(ctx); err != nil {
		err = fmt.Errorf("failover: %w", err)
		return nil, errors.Join(err, heal(context.WithoutCancel(ctx)))
	}
	return heal, nil
}

// pair is a master, its replica, and the links that lead to the master.
type pair struct {
	master, replica *rig.Server
	replication     *rig.Link
	clients         []*rig.Link
}

func (f Failover) pair() (p pair, err error) {
	var errs [3]error
	p.master, errs[0] = f.Rig.Server(masterName)
	p.replica, errs[1] = f.Rig.Server(replicaName)
	p.replication, errs[2] = f.Rig.Link(replicaName, masterName)
	for _, l := range f.Rig.Links() {
		if l.To() == masterName && l != p.replication {
			p.clients = append(p.clients, l)
		}
	}
	err = errors.Join(errs[:]...)
	if err == nil && len(p.clients) == 0 {
		err = errors.New("no replica has a link to redis-1: start the rig with Config.Proxied")
	}
	if err != nil {
		return pair{}, fmt.Errorf("failover: %w", err)
	}
	return p, nil
}

func (p pair) failOver(ctx context.Context) error {
	// Before the kill, or the master would send its last writes.
	if err := p.replication.Cut(); err != nil {
		return err
	}
	p.master.Kill()
	if err := promote(ctx, p.replica); err != nil {
		return err
	}
	return p.lead(p.replica)
}

// failBack also works after an incomplete failover.
func (p pair) failBack(ctx context.Context) error {
	if err := bringUp(ctx, p.master); err != nil {
		return err
	}
	if err := p.replication.Restore(); err != nil {
		return err
	}
	promoted, err := says(ctx, p.replica, "role:master")
	if err != nil {
		return err
	}
	if promoted { // it has data that the restarted master has not
		if err := follow(ctx, p.master, p.replica.Addr()); err != nil {
			return err
		}
	}
	if err := promote(ctx, p.master); err != nil {
		return err
	}
	if err := p.lead(p.master); err != nil {
		return err
	}
	return follow(ctx, p.replica, p.replication.Addr())
}

// lead makes the clients' links lead to a server.
func (p pair) lead(to *rig.Server) error {
	for _, l := range p.clients {
		if err := l.SetUpstream(to.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// promote makes a server a master.
func promote(ctx context.Context, s *rig.Server) error {
	c, err := connect(s)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("promote %s: %w", s.Name(), err)
	}
	return nil
}

// follow makes a server the replica of the one at master, and returns when it has its data.
func follow(ctx context.Context, s *rig.Server, master string) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return err
	}
	c, err := connect(s)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.ReplicaOf(ctx, host, port).Err(); err != nil {
		return fmt.Errorf("%s follows %s: %w", s.Name(), master, err)
	}
	for {
		if up, err := says(ctx, s, "master_link_status:up"); up || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s follows %s: %w", s.Name(), master, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// says reports whether the server's replication state has that line.
func says(ctx context.Context, s *rig.Server, line string) (bool, error) {
	c, err := connect(s)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	info, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return false, fmt.Errorf("INFO of %s: %w", s.Name(), err)
	}
	return strings.Contains(info, line), nil
}

// connect opens a direct connection to the server, past all links.
func connect(s *rig.Server) (*redis.Client, error) {
	options, err := redis.ParseURL(s.RedisURL())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name(), err)
	}
	return redis.NewClient(options), nil
}
