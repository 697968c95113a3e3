package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// failover promotes a Redis replica that lacks the lock and the counter of fencing tokens. So the
// new master issues the same token again. Only MySQL's row can reject it, because the row keeps the
// highest registered token.
func failover() Experiment {
	proc := procedure{
		step: "writing", contenderParams: wait(grantBound), unrenewed: wait(Lease / 2),
		prepare: cutReplication,
		inject: func(ctx context.Context, r *round) (fault.Heal, error) {
			// If the stock is in Redis, one sale must not reach the replica or MySQL before the failover.
			var late []fault.Fault
			if r.participants[0].Card.Stock == "redis" {
				late = cuts(r.bed.links("", "mysql"))
			}
			heal, err := r.injectAll(ctx, late...)
			if err != nil {
				return nil, err
			}
			r.send(ctx, observer, wait(0))
			r.await(observer)
			failBack, err := r.injectAll(ctx, fault.Failover(r.bed.Rig))
			return failBack, errors.Join(err, heal(context.WithoutCancel(ctx)))
		},
	}
	return Experiment{
		Hazard: "failover", Title: "the Redis master dies before it has replicated the lock", Shows: "the key is lost, and there are two holders",
		Applies: func(c Card) bool { return c.uses("redis") }, Fenced: true,
		// Strategies with stock in Redis run separately from the others: the cut from MySQL would end
		// connections that hold the others' locks.
		perform: proc.inGroups(func(s Subject) string { return "stock in " + cmp.Or(s.Card.Stock, "mysql") }),
	}
}

// cutReplication keeps later writes to redis-1 from its replica. The promoted replica lacks them.
func cutReplication(_ context.Context, r *round) error {
	link, err := r.bed.Rig.Link("redis-1-replica", "redis-1")
	if err != nil {
		return err
	}
	return link.Cut()
}

func minorityLoss() Experiment {
	rejected := finding{api.Stalled, Progress, api.Text{EN: "Less than half of the nodes were dead, but a request was rejected.", ZH: "宕机的节点不到一半，但有请求被拒绝。"}}
	return Experiment{
		Hazard: "minority-loss", Title: "2 of 5 Redis and the leaders of 3 ZooKeeper and 3 etcd die", Shows: "sales continue", Applies: claimedOrOnTrial("minority-loss", "redlock", "zookeeper", "etcd"),
		perform: procedure{
			step: "asked", contenderParams: wait(grantBound), judge: mustSell(rejected, holder, contender),
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				at := r.bed.Rig.Addresses()
				zookeeper, err := leader(ctx, "zookeeper", at.Zookeeper, backend.ZooKeeperLeads)
				if err != nil {
					return nil, err
				}
				etcd, err := leader(ctx, "etcd", at.Etcd, backend.EtcdLeads)
				if err != nil {
					return nil, err
				}
				return r.killAndResume(ctx, zookeeper, etcd, "redis-4", "redis-5")
			},
		}.perform,
	}
}

// majorityLoss kills more than half of the nodes. No request may acquire the lock afterwards.
func majorityLoss() Experiment {
	return Experiment{
		Hazard: "majority-loss", Title: "3 of 5 Redis, 2 of 3 ZooKeeper and 2 of 3 etcd die", Shows: "requests are rejected, and no update is lost",
		Applies: claimedOrOnTrial("minority-loss", "redlock", "zookeeper", "etcd"),
		perform: procedure{
			step: "asked", contenderParams: wait(time.Second),
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				return r.killAndResume(ctx, "redis-3", "redis-4", "redis-5", "zookeeper-2", "zookeeper-3", "etcd-2", "etcd-3")
			},
		}.perform,
	}
}

func clockJump() Experiment {
	return Experiment{
		Hazard: "clock-jump", Title: "the clocks of all Redis servers jump ahead by an hour", Shows: "keys expire early, and there are two holders",
		Applies: locksOn("redis", "zookeeper"), Fenced: true,
		perform: procedure{
			step: "writing", contenderParams: wait(5 * time.Second),
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				jump := func(s *rig.Server) fault.Fault { return fault.ClockJump(s, time.Hour) }
				return r.injectInto(ctx, jump, "redis-1", "redis-2", "redis-3", "redis-4", "redis-5")
			},
		}.perform,
	}
}

// sessionExpiry cuts the holder off until its ZooKeeper session or its etcd lease expires.
func sessionExpiry() Experiment {
	return Experiment{
		Hazard: "session-expiry", Title: "the holder's session expires", Shows: "its nodes are deleted; does the holder notice?",
		Applies: locksOn("zookeeper", "etcd"), Fenced: true,
		perform: procedure{step: "read", contenderParams: wait(grantBound), healLate: true, inject: cutOff("zookeeper", "etcd")}.perform,
	}
}

func cutoff() Experiment {
	return Experiment{
		Hazard: "cutoff", Title: "the holder is cut off from the lock service", Shows: "its lease expires; does it still write?",
		Applies: locksOn("redis", "zookeeper", "etcd", "postgres"), Fenced: true,
		perform: procedure{
			step: "read", contenderParams: wait(grantBound), healLate: true,
			inject: cutOff("redis", "zookeeper", "etcd", "postgres", "pgbouncer"),
		}.perform,
	}
}

// lostReply loses the answer to an acquisition, so the client does not know that it has the lock.
func lostReply() Experiment {
	proc := procedure{
		step: "asked", holderParams: wait(time.Second), contenderParams: wait(grantBound), inject: loseReply,
		judge: func(p *participant) *finding {
			waited := p.ops[contender].Waited
			if p.ops[contender].Outcome == history.OK && waited < Lease/2 {
				return nil
			}
			return &finding{api.Stalled, Progress, api.Textf("A lock without an owner kept the next request waiting for %v.", "一把没有主人的锁让下一个请求等了 %v。", waited.Round(100*time.Millisecond))}
		},
	}
	return Experiment{
		Hazard: "lost-reply", Title: "the answer to an acquisition is lost", Shows: "an orphaned lock keeps the others waiting", Applies: claimedOrOnTrial("lost-reply", "redis"),
		// Strategies run one by one: each needs its own fault, and a link has one fault at a time.
		perform: proc.inGroups(Subject.Name),
	}
}

func loseReply(ctx context.Context, r *round) (fault.Heal, error) {
	// Load scripts and create directories first: only the acquisition's answer must be lost.
	r.send(ctx, observer, nil)
	r.await(observer)
	lockService := r.participants[0].Card.lockService()
	text := ""
	if lockService == "zookeeper" || lockService == "etcd" {
		text = "/oversell/" // the path of a new node; a heartbeat has no path
	}
	var faults []fault.Fault
	for _, link := range r.bed.links(name(r.on[holder]), lockService) {
		faults = append(faults, fault.LostReply(link, text))
	}
	heal, err := r.injectAll(ctx, faults...)
	if err != nil {
		return nil, err
	}
	if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
		return heal, err
	}
	r.await(holder)
	return heal, nil
}

func locksOn(backends ...string) func(Card) bool {
	return func(c Card) bool { return c.Locker && slices.ContainsFunc(backends, c.uses) }
}

// service returns the kind of a server, such as redis for redis-3.
func service(server string) string {
	kind, _, _ := strings.Cut(server, "-")
	return kind
}

// links returns a replica's links to servers of these kinds. An empty from means all replicas.
func (bed *Testbed) links(from string, kinds ...string) []*rig.Link {
	return slices.DeleteFunc(bed.Rig.Links(), func(l *rig.Link) bool {
		return !slices.Contains(kinds, service(l.To())) || l.From() != from && (from != "" || service(l.From()) != "replica")
	})
}

func cuts(links []*rig.Link) (faults []fault.Fault) {
	for _, link := range links {
		faults = append(faults, fault.Cut(link))
	}
	return faults
}

func cutOff(services ...string) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) {
		links := r.bed.links(name(r.on[holder]), services...)
		if len(links) == 0 {
			return nil, fmt.Errorf("no link from %s to %v", name(r.on[holder]), services)
		}
		return r.injectAll(ctx, cuts(links)...)
	}
}

func noHeal(context.Context) error { return nil }

// injectAll ends the earlier faults if one of them fails. heal ends all faults in reverse order.
func (r *round) injectAll(ctx context.Context, faults ...fault.Fault) (heal fault.Heal, err error) {
	var heals []fault.Heal
	heal = func(ctx context.Context) error {
		var errs []error
		for _, h := range slices.Backward(heals) {
			errs = append(errs, h(ctx))
		}
		return errors.Join(errs...)
	}
	for _, one := range faults {
		h, err := one.Inject(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s on %s: %w", one.Name, one.Target, err), heal(context.WithoutCancel(ctx)))
		}
		heals = append(heals, h)
		r.span.What, r.span.Who = one.Name, one.Target
	}
	return heal, nil
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

func (r *round) killAndResume(ctx context.Context, servers ...string) (fault.Heal, error) {
	heal, err := r.injectInto(ctx, fault.Kill, servers...)
	if err != nil {
		return nil, err
	}
	return heal, r.bed.replica(r.on[holder]).ResumeAll(ctx)
}

// resumeHolders resumes the holders before the contenders send their requests.
func resumeHolders(ctx context.Context, r *round) (fault.Heal, error) {
	return noHeal, r.bed.replica(r.on[holder]).ResumeAll(ctx)
}

// freezeHolders pauses the holders' replica, as a garbage collection or a suspended machine does.
func freezeHolders(ctx context.Context, r *round) (fault.Heal, error) {
	return r.injectInto(ctx, fault.Stop, name(r.on[holder]))
}

// killReplica kills the replica that got the request part (such as holder), as a power cut does.
func killReplica(part int) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) {
		heal, err := r.injectInto(ctx, fault.Kill, name(r.on[part]))
		r.span.What = "killed" // package check ends the holds of a replica at a span with this word
		return heal, err
	}
}
