package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// failover promotes a Redis replica that has not received the lock. The counter of the
// fencing tokens is lost with it, so the new master issues the same tokens again. Only the
// fence in the row of MySQL tells the two holders apart.
func failover() Experiment {
	sched := schedule{
		hazard: "failover", step: "writing", contenderParams: withWait(grantBound), fenced: Protects,
		prepare: func(_ context.Context, r *run) error {
			link, err := r.bed.Rig.Link("redis-1-replica", "redis-1")
			if err != nil {
				return err
			}
			return link.Cut()
		},
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			// Where the stock itself is in Redis, one sale reaches neither the replica nor
			// MySQL in time.
			var late []fault.Fault
			if r.participants[0].Card.Stock == "redis" {
				late = r.bed.cutsTo("mysql")
			}
			heal, err := r.injectAll(ctx, late...)
			if err != nil {
				return nil, err
			}
			r.send(ctx, observer, withWait(0))
			r.await(observer)
			failBack, err := r.injectAll(ctx, fault.Failover{Rig: r.bed.Rig})
			return failBack, errors.Join(err, heal(context.WithoutCancel(ctx)))
		},
	}
	e := sched.experiment(on("redis"), "the Redis master dies before it has replicated the lock", "the key is lost, and there are two holders")
	e.Fenced = true
	// Separate runs: a cut from MySQL would end the connections that holders of a lock write with.
	e.run = func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) (results []Result, err error) {
		for _, stock := range []string{"", "redis"} {
			some := slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool { return s.Card.Stock != stock })
			if len(some) == 0 {
				continue
			}
			result, err := sched.run(ctx, bed, some, seed)
			results = append(results, result...)
			if err != nil {
				return results, err
			}
		}
		return results, nil
	}
	return e
}

// minorityLoss kills less than half of the nodes, including the leader, and then sells.
func minorityLoss() Experiment {
	sched := schedule{
		hazard: "minority-loss", step: "asked", contenderParams: withWait(grantBound),
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			leaders, err := r.bed.leaders(ctx)
			if err != nil {
				return nil, err
			}
			return r.killAndResume(ctx, append(leaders, "redis-4", "redis-5")...)
		},
		judge: mustSell("less than half of the nodes were dead, but "),
	}
	return sched.experiment(claimed("minority-loss"), "2 of 5 Redis and the leaders of 3 ZooKeeper and 3 etcd die", "sales continue")
}

// majorityLoss kills more than half of the nodes: then no request may acquire the lock.
func majorityLoss() Experiment {
	sched := schedule{
		hazard: "majority-loss", step: "asked", contenderParams: withWait(time.Second),
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			return r.killAndResume(ctx, "redis-3", "redis-4", "redis-5", "zookeeper-2", "zookeeper-3", "etcd-2", "etcd-3")
		},
	}
	return sched.experiment(claimed("minority-loss"), "3 of 5 Redis, 2 of 3 ZooKeeper and 2 of 3 etcd die", "requests are rejected, and no update is lost")
}

// clockJump sets the clocks of all Redis servers ahead: their keys expire at once.
func clockJump() Experiment {
	sched := schedule{
		hazard: "clock-jump", step: "writing", contenderParams: withWait(5 * time.Second), fenced: Protects,
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			var faults []fault.Fault
			for i := range 5 {
				server, err := r.bed.Rig.Server(fmt.Sprintf("redis-%d", i+1))
				if err != nil {
					return nil, err
				}
				faults = append(faults, fault.ClockJump{Server: server, By: time.Hour})
			}
			return r.injectAll(ctx, faults...)
		},
	}
	e := sched.experiment(locksOn("redis", "zookeeper"), "the clocks of all Redis servers jump ahead by an hour", "keys expire early, and there are two holders")
	e.Fenced = true
	return e
}

// sessionExpiry cuts the holder off from ZooKeeper until its session expires, or from etcd
// until its lease does.
func sessionExpiry() Experiment {
	sched := schedule{
		hazard: "session-expiry", step: "read", contenderParams: withWait(grantBound), healLate: true, fenced: Protects,
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			return r.cutOff(ctx, "zookeeper", "etcd")
		},
	}
	e := sched.experiment(locksOn("zookeeper", "etcd"), "the holder's session expires", "its nodes are deleted; does the holder notice?")
	e.Fenced = true
	return e
}

// cutoff cuts the holder off from the lock service, but not from MySQL.
func cutoff() Experiment {
	sched := schedule{
		hazard: "cutoff", step: "read", contenderParams: withWait(grantBound), healLate: true, fenced: Protects,
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			return r.cutOff(ctx, "redis", "zookeeper", "etcd")
		},
	}
	e := sched.experiment(locksOn("redis", "zookeeper", "etcd"), "the holder is cut off from the lock service", "its lease expires; does it still write?")
	e.Fenced = true
	return e
}

// lostReply loses the answer to an acquisition: the server holds the lock for a client that
// does not know.
func lostReply() Experiment {
	sched := schedule{
		hazard: "lost-reply", step: "asked", contenderParams: withWait(grantBound), holderParams: withWait(time.Second),
		inject: func(ctx context.Context, r *run) (func(context.Context) error, error) {
			// One sale first: otherwise the lost answer is that to loading a script or to creating
			// a directory.
			r.send(ctx, observer, nil)
			r.await(observer)
			var faults []fault.Fault
			for _, link := range r.bed.Rig.Links() {
				if link.From() != name(r.on[holder]) || service(link.To()) != r.participants[0].Card.lockService() {
					continue
				}
				text := ""
				if s := service(link.To()); s == "zookeeper" || s == "etcd" {
					text = "/oversell/" // a new node's path; a heartbeat has none
				}
				faults = append(faults, fault.LostReply{Link: link, Text: text})
			}
			heal, err := r.injectAll(ctx, faults...)
			if err != nil {
				return heal, err
			}
			if err := r.bed.replica(r.on[holder]).ResumeAll(ctx); err != nil {
				return heal, err
			}
			r.await(holder)
			return heal, nil
		},
		judge: func(p *participant) *finding {
			waited := p.ops[contender].Waited
			if p.ops[contender].Outcome == history.OK && waited < Lease/2 {
				return nil
			}
			return &finding{Stalled, Progress, fmt.Sprintf("an orphaned lock kept the next request waiting for %v; ", waited.Round(100*time.Millisecond))}
		},
	}
	e := sched.experiment(claimed("lost-reply"), "the answer to an acquisition is lost", "an orphaned lock keeps the others waiting")
	// A link has one fault at a time, and each strategy needs its own.
	e.run = func(ctx context.Context, bed *Testbed, subjects []Subject, seed int64) (results []Result, err error) {
		for _, s := range subjects {
			result, err := sched.run(ctx, bed, []Subject{s}, seed)
			results = append(results, result...)
			if err != nil {
				return results, fmt.Errorf("%s: %w", s.Name(), err)
			}
		}
		return results, nil
	}
	return e
}

// mustSell stalls unless both requests sold.
func mustSell(otherwise string) func(p *participant) *finding {
	return func(p *participant) *finding {
		if p.ops[holder].Outcome == history.OK && p.ops[contender].Outcome == history.OK {
			return nil
		}
		return &finding{Stalled, Progress, otherwise + "a request was rejected; "}
	}
}

// on selects the strategies that use a backend.
func on(backend string) func(Card) bool { return func(c Card) bool { return c.uses(backend) } }

// locksOn selects the locks on one of the backends.
func locksOn(backends ...string) func(Card) bool {
	return func(c Card) bool {
		for _, b := range backends {
			if c.Locker && c.uses(b) {
				return true
			}
		}
		return false
	}
}

// service returns the kind of a server: redis for redis-3.
func service(server string) string {
	kind, _, _ := strings.Cut(server, "-")
	return kind
}

// injectAll injects the faults; heal ends them in reverse order. After an error it has ended
// those that it had injected.
func (r *run) injectAll(ctx context.Context, faults ...fault.Fault) (heal func(context.Context) error, err error) {
	var heals []fault.Heal
	heal = func(ctx context.Context) error {
		var errs []error
		for i := range heals {
			errs = append(errs, heals[len(heals)-1-i](ctx))
		}
		return errors.Join(errs...)
	}
	for _, one := range faults {
		h, err := one.Inject(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s on %s: %w", one.Name(), one.Target(), err), heal(context.WithoutCancel(ctx)))
		}
		heals = append(heals, h)
		r.span.What, r.span.Who = one.Name(), one.Target()
	}
	return heal, nil
}

// cutOff cuts the holders' replica off from these services.
func (r *run) cutOff(ctx context.Context, services ...string) (func(context.Context) error, error) {
	var faults []fault.Fault
	for _, link := range r.bed.Rig.Links() {
		for _, s := range services {
			if link.From() == name(r.on[holder]) && service(link.To()) == s {
				faults = append(faults, fault.Cut{Link: link})
			}
		}
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("no link from %s to %v", name(r.on[holder]), services)
	}
	return r.injectAll(ctx, faults...)
}

// cutsTo returns the cuts of all replicas from a server.
func (bed *Testbed) cutsTo(server string) (cuts []fault.Fault) {
	for _, link := range bed.Rig.Links() {
		if link.To() == server && strings.HasPrefix(link.From(), "replica-") {
			cuts = append(cuts, fault.Cut{Link: link})
		}
	}
	return cuts
}

// killAndResume kills servers, and then resumes the holders.
func (r *run) killAndResume(ctx context.Context, servers ...string) (func(context.Context) error, error) {
	var faults []fault.Fault
	for _, s := range servers {
		server, err := r.bed.Rig.Server(s)
		if err != nil {
			return nil, err
		}
		faults = append(faults, fault.Kill{Server: server})
	}
	heal, err := r.injectAll(ctx, faults...)
	if err != nil {
		return nil, err
	}
	return heal, r.bed.replica(r.on[holder]).ResumeAll(ctx)
}

// resumeHolders resumes the holders before the contenders come.
func resumeHolders(ctx context.Context, r *run) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, r.bed.replica(r.on[holder]).ResumeAll(ctx)
}

// freezeHolders pauses the holders' replica, as a long garbage collection or a suspended
// machine does, until every lease of the holders has expired.
func freezeHolders(ctx context.Context, r *run) (func(context.Context) error, error) {
	server, err := r.server(holder)
	if err != nil {
		return nil, err
	}
	return r.injectAll(ctx, fault.Stop{Server: server})
}

// killHolders ends the holders' replica as a power cut does.
func killHolders(ctx context.Context, r *run) (func(context.Context) error, error) {
	server, err := r.server(holder)
	if err != nil {
		return nil, err
	}
	heal, err := r.injectAll(ctx, fault.Kill{Server: server})
	r.span.What = "killed"
	return heal, err
}

func (r *run) server(part int) (*rig.Server, error) {
	return r.bed.Rig.Server(name(r.on[part]))
}
