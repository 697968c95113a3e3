package experiment

import (
	"context"
	"errors"
	"slices"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// This file has what the experiments use to inject their faults.

// links returns a replica's links to servers of these kinds. An empty from means all replicas.
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

// injectAll ends the earlier faults if one of them fails. heal ends all faults in reverse order.
func (r *round) injectAll(ctx context.Context, faults ...fault.Fault) (heal fault.Heal, err error) {
	r.faults = append(r.faults, faults...)
	if r.bed.idle || len(faults) == 0 {
		return noHeal, nil
	}
	all := fault.Together(faults...)
	if heal, err = all.Inject(ctx); err == nil {
		r.span.What, r.span.Who = all.Name, all.Target
	}
	return heal, err
}

// observe says why no fault has landed. With several faults, such as cuts from all servers, one of them is enough: a
// lock may use only one server.
func (r *round) observe(ctx context.Context) {
	r.missed = errors.Join(r.missed, fault.Landed(ctx, r.faults...))
}

func (r *round) injectInto(ctx context.Context, of func(*rig.Server) fault.Fault, servers ...string) (fault.Heal, error) {
	var faults []fault.Fault
	for _, name := range servers {
		server, err := r.bed.Rig.Server(name)
		if err != nil {
			return nil, err
		}
		faults = append(faults, of(server))
	}
	return r.injectAll(ctx, faults...)
}

// pauseLapse says what happened when a holder wrote after a pause beyond its lease.
func pauseLapse() api.Text {
	return api.Text{EN: "The holder's lease expired during the pause, and it wrote anyway.", ZH: "停顿期间租期已过，持锁者醒来仍然写入。"}
}

// inServer selects locks that are kept in a server, where an operator finds them.
func inServer(c api.Card) bool { return c.Locker && c.Scope != api.ScopeProcess }

// clearLockTables deletes the rows of other runs. Later rows show that the lock is kept in a table.
func clearLockTables(ctx context.Context, r *round) error {
	at := r.bed.Rig.Addresses()
	_, err := backend.DeleteMySQLLocks(ctx, at.MySQL)
	if err == nil && at.Postgres != "" {
		_, err = backend.DeletePostgresRows(ctx, at.Postgres)
	}
	return err
}

// cutReplication keeps later writes to redis-1 from its replica. The promoted replica lacks them.
func (bed *Testbed) cutReplication() (*rig.Link, error) {
	link, err := bed.Rig.Link("redis-1-replica", "redis-1")
	if err == nil {
		err = link.Cut()
	}
	return link, err
}
