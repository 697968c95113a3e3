package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// Resharding moves a slot of a Redis cluster to another master in steps, as redis-cli does. The clients are
// served meanwhile.
type Resharding struct {
	masters  []*rig.Server
	from, to *rig.Server
	ids      map[*rig.Server]string
	slot     int64
	stage    int
	password string
}

// The stages of a Resharding.
const (
	Announced   = 1 + iota // both masters know that the slot moves; no key has moved
	PartlyMoved            // one key has moved: the answer to a script may be TRYAGAIN
	Moved                  // all keys have moved: the answer of the old master is ASK
	Reassigned             // the slot belongs to the new master: the answer of the old one is MOVED
)

// Reshard prepares to move the slot of the lock (see Observe). It changes nothing.
func (m *Masters) Reshard(ctx context.Context) (*Resharding, error) {
	key, from, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	r := &Resharding{masters: m.masters, from: from, ids: map[*rig.Server]string{}}
	for _, s := range r.masters {
		if s != r.from {
			r.to = s
		}
		if err := withRedis(s, func(c *redis.Client) (err error) {
			r.ids[s], err = c.Do(ctx, "CLUSTER", "MYID").Text()
			return err
		}); err != nil {
			return nil, err
		}
	}
	return r, withRedis(r.from, func(c *redis.Client) (err error) {
		r.password = c.Options().Password
		r.slot, err = c.ClusterKeySlot(ctx, key).Result()
		return err
	})
}

// Advance goes on to a stage. It does nothing if the stage has been reached.
func (m *Resharding) Advance(ctx context.Context, stage int) error {
	for m.stage < stage {
		if err := m.next(ctx); err != nil {
			return fmt.Errorf("move slot %d from %s to %s: %w", m.slot, m.from.Name(), m.to.Name(), err)
		}
		m.stage++
	}
	return nil
}

// Finish moves the rest of the slot.
func (m *Resharding) Finish(ctx context.Context) error { return m.Advance(ctx, Reassigned) }

func (m *Resharding) next(ctx context.Context) error {
	switch m.stage + 1 {
	case Announced: // the new master first, or it would send back those whom the old one sends
		return errors.Join(m.setSlot(ctx, m.to, "IMPORTING", m.ids[m.from]), m.setSlot(ctx, m.from, "MIGRATING", m.ids[m.to]))
	case PartlyMoved:
		_, err := m.migrate(ctx, 1)
		return err
	case Moved:
		for {
			if n, err := m.migrate(ctx, 100); n == 0 || err != nil {
				return err
			}
		}
	default:
		errs := []error{m.setSlot(ctx, m.to, "NODE", m.ids[m.to])}
		for _, s := range m.masters {
			if s != m.to {
				errs = append(errs, m.setSlot(ctx, s, "NODE", m.ids[m.to]))
			}
		}
		return errors.Join(errs...)
	}
}

func (m *Resharding) setSlot(ctx context.Context, s *rig.Server, state, node string) error {
	return withRedis(s, func(c *redis.Client) error { return c.Do(ctx, "CLUSTER", "SETSLOT", m.slot, state, node).Err() })
}

// migrate moves some keys of the slot. It returns their number.
func (m *Resharding) migrate(ctx context.Context, most int) (n int, err error) {
	host, port, err := net.SplitHostPort(m.to.Addr())
	if err != nil {
		return 0, err
	}
	return n, withRedis(m.from, func(c *redis.Client) error {
		keys, err := c.ClusterGetKeysInSlot(ctx, int(m.slot), most).Result()
		if n = len(keys); n == 0 || err != nil {
			return err
		}
		slices.Sort(keys)
		args := []any{"MIGRATE", host, port, "", 0, syncTimeout.Milliseconds(), "AUTH", m.password, "KEYS"}
		for _, key := range keys {
			args = append(args, key)
		}
		reply, err := c.Do(ctx, args...).Text()
		if err == nil && !strings.HasPrefix(reply, "OK") && reply != "NOKEY" {
			err = fmt.Errorf("MIGRATE answered %q", reply)
		}
		return err
	})
}
