package experiment

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// These experiments repeat what public bug reports describe.

// operator deletes the lock while its holder works. The holder works for another lease, in which a
// renewal can notice the deletion (redisson/redisson#2215: a key deleted by hand).
func operator() Experiment {
	return Experiment{
		Hazard: "operator", Title: "an operator deletes the lock while its holder works", Shows: "does the holder notice before it writes?",
		Applies: inServer, Fenced: true,
		perform: procedure{
			step: "read", contenderParams: wait(grantBound), prepare: clearLockTables, inject: deleteLocks, lapse: deletedLapse(),
			meanwhile: func(ctx context.Context, _ *round) error { return sleep(ctx, Lease) },
		}.inGroups(deletedTogether),
	}
}

// operatorAtWrite deletes the lock after the holder's last check. Its write comes between the
// contender's read and write. Only the server of the stock can reject it.
func operatorAtWrite() Experiment {
	return Experiment{
		Hazard: "operator-at-write", Title: "an operator deletes the lock after the holder's last check", Shows: "two holders, and the contender overwrites the holder's write",
		// The end of the sessions that hold locks in MySQL would end the connection of the write, too.
		Applies: func(c Card) bool { return inServer(c) && (c.Lease || c.lockService() != "mysql") }, Fenced: true,
		perform: procedure{
			step: "writing", contenderStops: "read", contenderParams: wait(grantBound), prepare: clearLockTables, inject: deleteLocks, lapse: deletedLapse(),
		}.inGroups(deletedTogether),
	}
}

// inServer selects locks that are kept in a server where deleteLocks finds them.
func inServer(c Card) bool {
	return c.Locker && c.Scope != api.ScopeProcess && !c.uses("postgres")
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
	_, err := backend.DeleteMySQLLocks(ctx, r.bed.Rig.Addresses().MySQL)
	return err
}

func deletedLapse() api.Text {
	return api.Text{EN: "The holder's lock was deleted, and it wrote anyway.", ZH: "持锁者的锁已被删除，它仍然写入。"}
}

func deleteLocks(ctx context.Context, r *round) (fault.Heal, error) {
	return r.injectAll(ctx, fault.DeleteLocks(r.bed.Rig, r.participants[0].Card.lockService()))
}

// starved freezes the holder while it works, until another request has sold (samcook/RedLock.net#48,
// redis/rueidis#923: a renewal that runs late). Its renewal then finds no lock, and must not acquire
// it again. Unlike in pause, the holder can still check its lock before it writes.
func starved() Experiment {
	return Experiment{
		Hazard: "starved", Title: "the holder's process gets no processor until its lease has ended, then works on",
		Shows: "does a late renewal, or the clock, stop its write?", Applies: func(c Card) bool { return c.Locker && c.Lease }, Fenced: true,
		perform: procedure{
			step: "read", holderParams: url.Values{"hold": {(Lease / 2).String()}}, contenderParams: wait(grantBound),
			inject: freezeHolders, lapse: pauseLapse(),
		}.perform,
	}
}

// renewalReply loses the answer to a renewal that the server has carried out
// (cirello-io/dynamolock#280). The lock is held, so its holder must keep it and sell.
func renewalReply() Experiment {
	gaveUp := finding{api.Aborted, "", api.Text{EN: "The server had renewed the lock, but the holder gave it up and did not write.", ZH: "服务器已经续期，但持锁者放弃了锁，没有写入。"}}
	stuck := finding{api.Stalled, Progress, api.Textf("No other request acquired the lock within %v.", "%v 内没有其他请求拿到锁。", grantBound)}
	proc := procedure{
		step: "read", contenderParams: wait(2 * grantBound), contenderAt: "asked", inject: loseRenewal,
		// Without another renewal, the lease ends meanwhile, and the contender acquires the lock.
		meanwhile: func(ctx context.Context, _ *round) error { return sleep(ctx, 3*Lease/2) },
		lapse:     api.Text{EN: "The holder stopped its renewals after the lost answer, and wrote after the end of its lease.", ZH: "应答丢失之后持锁者不再续期，租期结束后仍然写入。"},
		judge: func(p *participant) *finding {
			if f := mustSell(gaveUp, holder)(p); f != nil {
				return f
			}
			return mustSell(stuck, contender)(p)
		},
	}
	return Experiment{
		Hazard: "renewal-reply", Title: "the answer to a renewal is lost", Shows: "does the holder give up a lock that it still has?",
		Applies: func(c Card) bool { return c.Locker && c.Renews }, perform: proc.inGroups(Subject.Name),
	}
}

// loseRenewal loses one answer on each link to the lock's service, and waits until one is lost.
func loseRenewal(ctx context.Context, r *round) (fault.Heal, error) {
	service := r.participants[0].Card.lockService()
	links := r.bed.links(name(r.on[holder]), service)
	// The answer to a renewal by script or UPDATE. For ZooKeeper and etcd, a heartbeat is a renewal.
	text := map[string]string{"redis": ":1\r\n", "mysql": "Rows matched: 1"}[service]
	heal, err := r.loseReplies(ctx, links, text)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		heal, err = r.loseReplies(ctx, links, "") // this lock is renewed by another command
	}
	return heal, err
}

func (r *round) loseReplies(ctx context.Context, links []*rig.Link, text string) (fault.Heal, error) {
	var faults []fault.Fault
	for _, link := range links {
		faults = append(faults, fault.LostReply(link, text))
	}
	heal, err := r.injectAll(ctx, faults...)
	if err != nil {
		return nil, err
	}
	lost := func() bool { return slices.ContainsFunc(links, (*rig.Link).HasLostReply) }
	if err := within(ctx, 2*Lease, "the answer to a renewal is lost", lost); err != nil {
		return nil, errors.Join(err, heal(context.WithoutCancel(ctx)))
	}
	return heal, nil
}

// waiterSession ends the session, or the lease, of a waiter, and with it the place in the queue. The
// waiter must leave, or queue again, before the holder releases the lock (etcd-io/etcd#19597). It must
// not acquire the lock with its old session.
func waiterSession() Experiment {
	return Experiment{
		Hazard: "waiter-session", Title: "the session of a waiter expires", Shows: "does it wait in vain, or acquire the lock beside the next waiter?",
		Applies: locksOn("zookeeper", "etcd"),
		perform: procedure{
			step: "read", contenderParams: working(grantBound), contenderAt: "asked", inject: expireWaiter,
			meanwhile: func(ctx context.Context, r *round) error { return r.awaitStep(ctx, contender, queued) },
			after:     func(_ context.Context, r *round) error { r.await(observer); return nil },
			judge:     judgeWaiter,
			explain: func(result *Result, p *participant) {
				answer := Answer(p.ops[observer])
				result.Why = joined(result.Why, api.Textf("The waiter whose session expired: %[1]s.", "会话过期的等待者：%[2]s。", answer.EN, answer.ZH))
			},
		}.perform,
	}
}

// working lets the request work for a while. Two holders then overlap, even if one is granted later.
func working(wait time.Duration) url.Values {
	return url.Values{"wait": {wait.String()}, "hold": {(Lease / 2).String()}}
}

// expireWaiter lets an observer queue, ends its session, and gives it time to notice that.
func expireWaiter(ctx context.Context, r *round) (fault.Heal, error) {
	before, err := r.bed.places(ctx)
	if err != nil {
		return nil, err
	}
	r.send(ctx, observer, working(30*time.Second))
	if err := r.awaitStep(ctx, observer, queued); err != nil {
		return nil, err
	}
	// Not every waiter has a place in a queue, so the time is limited.
	var own places
	_ = within(ctx, Lease, "all waiters have a place", func() bool {
		now, err := r.bed.places(ctx)
		own = now.without(before)
		return err == nil && len(own.nodes)+len(own.leases) >= len(r.participants)
	})
	if err := r.endSessions(ctx, own); err != nil {
		return nil, err
	}
	r.span.What, r.span.Who, r.span.From = "session expired", name(r.on[observer]), r.bed.since()
	_ = within(ctx, Lease, "all waiters have left", func() bool {
		return !slices.ContainsFunc(r.participants, func(p *participant) bool { return !isClosed(p.ended[observer]) })
	})
	return noHeal, ctx.Err()
}

func within(ctx context.Context, limit time.Duration, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return eventually(ctx, what, so)
}

// endSessions revokes leases in etcd. A session of ZooKeeper has a password, so it is cut off until
// the server has expired it.
func (r *round) endSessions(ctx context.Context, own places) error {
	for _, lease := range own.leases {
		if err := backend.RevokeEtcdLease(ctx, r.bed.Rig.Addresses().Etcd[0], lease); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(r.participants, func(p *participant) bool { return p.Card.uses("zookeeper") }) {
		return nil
	}
	heal, err := r.injectAll(ctx, cuts(r.bed.links(name(r.on[observer]), "zookeeper"))...)
	if err != nil {
		return err
	}
	err = sleep(ctx, ZKSession)
	expired := func() bool {
		now, failed := r.bed.places(ctx)
		return failed == nil && len(own.nodes) == len(own.without(now).nodes)
	}
	return errors.Join(err, eventually(ctx, "the waiter's session has expired", expired), heal(context.WithoutCancel(ctx)))
}

// places are the places in queues: nodes of ZooKeeper sessions, and leases of keys in etcd.
type places struct{ nodes, leases []string }

func (p places) without(other places) places {
	return places{
		slices.DeleteFunc(slices.Clone(p.nodes), func(node string) bool { return slices.Contains(other.nodes, node) }),
		slices.DeleteFunc(slices.Clone(p.leases), func(lease string) bool { return slices.Contains(other.leases, lease) }),
	}
}

func (bed *Testbed) places(ctx context.Context) (p places, err error) {
	at := bed.Rig.Addresses()
	client, err := backend.OpenZooKeeper(at.Zookeeper)
	if err != nil {
		return p, err
	}
	defer client.Close()
	var errs [2]error
	p.nodes, errs[0] = client.Ephemeral()
	p.leases, errs[1] = backend.EtcdLeases(ctx, at.Etcd[0])
	return p, errors.Join(errs[:]...)
}

func judgeWaiter(p *participant) *finding {
	waiter := p.ops[observer]
	noticed := p.ops[contender].Call // the end of the time in which the waiter can notice its loss
	if waiter.Outcome != history.OK && waiter.Return > noticed {
		return &finding{api.Stalled, Progress, api.Text{
			EN: "The waiter had lost its place in the queue, waited until the holder's release, and was rejected then.",
			ZH: "等待者在队列中的位置已经丢失，但一直等到持锁者释放之后才被拒绝。",
		}}
	}
	late := finding{api.Stalled, Progress, api.Textf("The next waiter did not acquire the lock within %v.", "下一个等待者在 %v 内没有拿到锁。", grantBound)}
	return mustSell(late, contender)(p)
}
