package player

import (
	"context"
	"errors"
	"slices"

	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// links returns the links (proxied connections) from the replica from to servers of these kinds. An empty from means all
// replicas.
func (bed *Testbed) links(from string, kinds ...string) []*rig.Link {
	return slices.DeleteFunc(bed.Rig.Links(), func(l *rig.Link) bool {
		return !slices.Contains(kinds, rig.Kind(l.To())) || l.From() != from && (from != "" || rig.Kind(l.From()) != "replica")
	})
}

func cuts(links []*rig.Link) (faults []fault.Fault) {
	for _, link := range links {
		faults = append(faults, fault.Cut(link))
	}
	return faults
}

func noHeal(context.Context) error { return nil }

// restore ends all faults of the links.
func restore(links []*rig.Link) fault.Heal {
	return func(context.Context) (err error) {
		for _, link := range links {
			err = errors.Join(err, link.Restore())
		}
		return err
	}
}

// clearLockTables deletes the rows of other runs from the lock tables. A row that appears later then shows that the lock
// is kept in a table.
func (bed *Testbed) clearLockTables(ctx context.Context) error {
	at := bed.Rig.Addresses()
	_, err := backend.DeleteMySQLLocks(ctx, at.MySQL)
	if err == nil && at.Postgres != "" {
		_, err = backend.DeletePostgresRows(ctx, at.Postgres)
	}
	return err
}

// cutReplication cuts the link on which redis-1-replica receives the writes to redis-1. If that replica is promoted
// later, it lacks all writes since then.
func (bed *Testbed) cutReplication() (*rig.Link, error) {
	link, err := bed.Rig.Link("redis-1-replica", "redis-1")
	if err == nil {
		err = link.Cut()
	}
	return link, err
}
