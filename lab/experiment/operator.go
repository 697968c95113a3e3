package experiment

import (
	"context"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
)

// operator deletes the lock while its holder works. The holder works for another lease, in which a
// renewal can notice the deletion (redisson/redisson#2215: a key deleted by hand).
func operator() Experiment {
	return Experiment{
		Hazard: "operator", Group: reported, Applies: inServer, Fenced: true,
		Title: api.Text{EN: "an operator deletes the lock while its holder works", ZH: "持锁者工作期间，运维人员删除了它的锁"},
		Shows: api.Text{EN: "does the holder notice before it writes?", ZH: "它在写入之前能发现吗？"},
		step:  "read", contenderParams: wait(grantBound), prepare: clearLockTables, inject: deleteLocks, group: deletedTogether,
		lapse:     api.Text{EN: "The holder's lock was deleted, and it wrote anyway.", ZH: "持锁者的锁已被删除，它仍然写入。"},
		meanwhile: func(ctx context.Context, _ *round) error { return sleep(ctx, Lease) },
	}
}

// operatorAtWrite deletes the lock after the holder's last check. Its write comes between the
// contender's read and write. Only the server of the stock can reject it.
func operatorAtWrite() Experiment {
	e := operator()
	e.Hazard = "operator-at-write"
	e.Title = api.Text{EN: "an operator deletes the lock after the holder's last check", ZH: "持锁者最后一次检查之后，运维人员删除了它的锁"}
	e.Shows = api.Text{EN: "two holders, and the contender overwrites the holder's write", ZH: "两个持锁者，竞争者覆盖了前一个的写入"}
	// The end of the sessions that hold locks in MySQL would end the connection of the write, too.
	e.Applies = func(c Card) bool { return inServer(c) && (c.Lease || c.lockService() != "mysql") }
	e.step, e.contenderStops, e.meanwhile = "writing", "read", nil
	return e
}

// inServer selects locks that are kept in a server, where deleteLocks finds them.
func inServer(c Card) bool {
	return c.Locker && c.Scope != api.ScopeProcess
}

// deletedTogether runs strategies on MySQL one by one: see clearLockTables.
func deletedTogether(s Subject) string {
	if service := s.Card.lockService(); service != "mysql" {
		return service
	}
	return s.Name()
}

// clearLockTables deletes the rows of other runs. Later rows show that the lock is kept in a table.
func clearLockTables(ctx context.Context, r *round) error {
	at := r.bed.Rig.Addresses()
	_, err := backend.DeleteMySQLLocks(ctx, at.MySQL)
	if err == nil && at.Postgres != "" {
		_, err = backend.DeletePostgresRows(ctx, at.Postgres)
	}
	return err
}

func deleteLocks(ctx context.Context, r *round) (fault.Heal, error) {
	return r.injectAll(ctx, fault.DeleteLocks(r.bed.Rig, r.participants[0].Card.lockService()))
}
