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

// failover promotes a Redis that does not have the lock. Its fence counter was in the same
// Redis, and the promoted one gives the same numbers again: only the fence in the row of
// MySQL tells two holders apart.
func failover() Experiment {
	d := duel{
		number: 10, hazard: "failover", step: "writing", rival: patient(bound), fenced: Protects,
		prepare: func(_ context.Context, f *fight) error {
			line, err := f.class.Rig.Line("redis-1-replica", "redis-1")
			if err != nil {
				return err //nolint:wrapcheck // says all
			}
			return line.Cut() //nolint:wrapcheck // says all
		},
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			// Where the stock itself is in Redis, somebody buys what the replica won't hear
			// of, nor MySQL before it is too late.
			var late []fault.Fault
			if f.players[0].Card.Stock == "redis" {
				late = f.class.linesTo("mysql")
			}
			heal, err := f.inject(ctx, late...)
			if err != nil {
				return nil, err
			}
			f.send(ctx, third, patient(0))
			f.wait(third)
			failBack, err := f.inject(ctx, fault.Failover{Rig: f.class.Rig})
			return failBack, errors.Join(err, heal(context.WithoutCancel(ctx)))
		},
	}
	e := d.experiment(on("redis"), "the master dies before it has replicated the lock", "the key is gone, and there are two holders")
	e.Fenced = true
	// A holder of a lock stands before its write with a connection to MySQL, which a cut ends.
	e.run = func(ctx context.Context, c *Class, subjects []Subject, seed int64) (cells []Cell, err error) {
		for _, stock := range []string{"", "redis"} {
			some := slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool { return s.Card.Stock != stock })
			if len(some) == 0 {
				continue
			}
			cell, err := d.run(ctx, c, some, seed)
			cells = append(cells, cell...)
			if err != nil {
				return cells, err
			}
		}
		return cells, nil
	}
	return e
}

// minorityLoss kills less than half of the nodes, the leader among them, then sells.
func minorityLoss() Experiment {
	d := duel{
		number: 11, hazard: "minority-loss", step: "asked", rival: patient(bound),
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			leaders, err := f.class.leaders(ctx)
			if err != nil {
				return nil, err
			}
			return f.killAndWake(ctx, append(leaders, "redis-4", "redis-5")...)
		},
		judge: mustSell("less than half of the nodes were dead, and yet "),
	}
	return d.experiment(claimed("minority-loss"), "2 of 5 Redis and the leaders of 3 ZooKeeper and 3 etcd die", "business goes on")
}

// majorityLoss kills more than half of them: then nobody may be let in.
func majorityLoss() Experiment {
	d := duel{
		number: 12, hazard: "majority-loss", step: "asked", rival: patient(time.Second),
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			return f.killAndWake(ctx, "redis-3", "redis-4", "redis-5", "zookeeper-2", "zookeeper-3", "etcd-2", "etcd-3")
		},
	}
	return d.experiment(claimed("minority-loss"), "3 of 5 Redis, 2 of 3 ZooKeeper and 2 of 3 etcd die", "refused, and nothing sold wrongly")
}

// clockJump sets the clocks of all Redis ahead: their keys expire at once.
func clockJump() Experiment {
	d := duel{
		number: 13, hazard: "clock-jump", step: "writing", rival: patient(5 * time.Second), fenced: Protects,
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			var faults []fault.Fault
			for i := range 5 {
				server, err := f.class.Rig.Server(fmt.Sprintf("redis-%d", i+1))
				if err != nil {
					return nil, err //nolint:wrapcheck // says all
				}
				faults = append(faults, fault.ClockJump{Server: server, By: time.Hour})
			}
			return f.inject(ctx, faults...)
		},
	}
	e := d.experiment(locksOn("redis", "zookeeper"), "the clocks of all Redis leap ahead by an hour", "keys expire early, and there are two holders")
	e.Fenced = true
	return e
}

// sessionExpiry cuts the holder off from ZooKeeper until its session is over, or from etcd
// until its lease is.
func sessionExpiry() Experiment {
	d := duel{
		number: 14, hazard: "session-expiry", step: "read", rival: patient(bound), lateHeal: true, fenced: Protects,
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			return f.cut(ctx, "zookeeper", "etcd")
		},
	}
	e := d.experiment(locksOn("zookeeper", "etcd"), "the holder's session expires", "its nodes are gone; does the holder know?")
	e.Fenced = true
	return e
}

// cutoff cuts the holder off from the lock service, not from MySQL.
func cutoff() Experiment {
	d := duel{
		number: 16, hazard: "cutoff", step: "read", rival: patient(bound), lateHeal: true, fenced: Protects,
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			return f.cut(ctx, "redis", "zookeeper", "etcd")
		},
	}
	e := d.experiment(locksOn("redis", "zookeeper", "etcd"), "the holder is cut off from the lock service", "its grant ends; does it still write?")
	e.Fenced = true
	return e
}

// lostReply loses the answer to an acquisition: the server did it, nobody was told.
func lostReply() Experiment {
	d := duel{
		number: 17, hazard: "lost-reply", step: "asked", rival: patient(bound), victim: patient(time.Second),
		strike: func(ctx context.Context, f *fight) (func(context.Context) error, error) {
			// A sale before, or what is lost is the answer to a script's loading or to a folder's making.
			f.send(ctx, third, nil)
			f.wait(third)
			var faults []fault.Fault
			for _, line := range f.class.Rig.Lines() {
				if line.From() != name(f.on[victim]) || service(line.To()) != f.players[0].Card.lockService() {
					continue
				}
				text := ""
				if s := service(line.To()); s == "zookeeper" || s == "etcd" {
					text = "/oversell/" // a new node's path; a heartbeat has none
				}
				faults = append(faults, fault.LostReply{Line: line, Text: text})
			}
			heal, err := f.inject(ctx, faults...)
			if err != nil {
				return heal, err
			}
			if err := f.class.replica(f.on[victim]).GoOn(ctx); err != nil {
				return heal, err
			}
			f.wait(victim)
			return heal, nil
		},
		judge: func(p *player) *finding {
			waited := p.ops[rival].Waited
			if p.ops[rival].Outcome == history.OK && waited < Lease/2 {
				return nil
			}
			return &finding{Stalled, "I4", fmt.Sprintf("a lock that nobody holds kept the next one waiting for %v; ", waited.Round(100*time.Millisecond))}
		},
	}
	e := d.experiment(claimed("lost-reply"), "the answer to an acquisition is lost", "an orphan holds the lock")
	// One line has one fault, and each strategy needs its own.
	e.run = func(ctx context.Context, c *Class, subjects []Subject, seed int64) (cells []Cell, err error) {
		for _, s := range subjects {
			cell, err := d.run(ctx, c, []Subject{s}, seed)
			cells = append(cells, cell...)
			if err != nil {
				return cells, fmt.Errorf("%s: %w", s.Name(), err)
			}
		}
		return cells, nil
	}
	return e
}

// mustSell wants both customers to get their goods.
func mustSell(otherwise string) func(p *player) *finding {
	return func(p *player) *finding {
		if p.ops[victim].Outcome == history.OK && p.ops[rival].Outcome == history.OK {
			return nil
		}
		return &finding{Stalled, "I4", otherwise + "somebody was sent away; "}
	}
}

// on are the strategies that use a backend.
func on(backend string) func(Card) bool { return func(c Card) bool { return c.uses(backend) } }

// locksOn are the locks on one of the backends.
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

// service is redis for redis-3.
func service(server string) string {
	kind, _, _ := strings.Cut(server, "-")
	return kind
}

// inject injects all faults; heal ends them in the opposite order. With an error, what
// was done is undone.
func (f *fight) inject(ctx context.Context, faults ...fault.Fault) (heal func(context.Context) error, err error) {
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
			return nil, errors.Join(fmt.Errorf("%s on %s: %w", one.Name(), one.Who(), err), heal(context.WithoutCancel(ctx)))
		}
		heals = append(heals, h)
		f.span.What, f.span.Who = one.Name(), one.Who()
	}
	return heal, nil
}

// cut cuts the victims' replica off from these services.
func (f *fight) cut(ctx context.Context, services ...string) (func(context.Context) error, error) {
	var faults []fault.Fault
	for _, line := range f.class.Rig.Lines() {
		for _, s := range services {
			if line.From() == name(f.on[victim]) && service(line.To()) == s {
				faults = append(faults, fault.Cut{Line: line})
			}
		}
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("no line from %s to %v", name(f.on[victim]), services)
	}
	return f.inject(ctx, faults...)
}

// linesTo are cuts of all replicas from a server.
func (c *Class) linesTo(server string) (cuts []fault.Fault) {
	for _, line := range c.Rig.Lines() {
		if line.To() == server && strings.HasPrefix(line.From(), "replica-") {
			cuts = append(cuts, fault.Cut{Line: line})
		}
	}
	return cuts
}

// killAndWake kills servers, and then lets the victims go on.
func (f *fight) killAndWake(ctx context.Context, servers ...string) (func(context.Context) error, error) {
	var faults []fault.Fault
	for _, s := range servers {
		server, err := f.class.Rig.Server(s)
		if err != nil {
			return nil, err //nolint:wrapcheck // says all
		}
		faults = append(faults, fault.Kill{Server: server})
	}
	heal, err := f.inject(ctx, faults...)
	if err != nil {
		return nil, err
	}
	return heal, f.class.replica(f.on[victim]).GoOn(ctx)
}

// wake lets the victims go on before the rivals come.
func wake(ctx context.Context, f *fight) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, f.class.replica(f.on[victim]).GoOn(ctx)
}

// freeze stops the victims' replica as a long garbage collection or a sleeping laptop
// does, until every lease of its holders is over.
func freeze(ctx context.Context, f *fight) (func(context.Context) error, error) {
	server, err := f.server(victim)
	if err != nil {
		return nil, err
	}
	return f.inject(ctx, fault.Stop{Server: server})
}

// killVictim ends the victims' replica as a power cut does.
func killVictim(ctx context.Context, f *fight) (func(context.Context) error, error) {
	server, err := f.server(victim)
	if err != nil {
		return nil, err
	}
	heal, err := f.inject(ctx, fault.Kill{Server: server})
	f.span.What = "killed"
	return heal, err
}

func (f *fight) server(part int) (*rig.Server, error) {
	return f.class.Rig.Server(name(f.on[part])) //nolint:wrapcheck // says all
}
