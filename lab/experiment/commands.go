package experiment

import (
	"context"
	"errors"
	"fmt"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// The experiments of this file strike between two commands of a lock in Redis. A program does not
// report its commands, but the link to Redis shows them. So each command in turn is held back: the
// first, the second, and so on, until the lock sends no more.

// mostCommands limits the commands of an acquisition or of a release, for a lock that never ends.
const mostCommands = 8

// errAllSent is the error of a run whose lock sends fewer commands.
var errAllSent = errors.New("the lock sends fewer commands")

// lateRelease delays each command of a release until the lease has ended and the contender has the
// lock. The command arrives late, as on a slow network. A release of two commands, such as GET and
// DEL, has compared too early, and frees the contender's lock.
func lateRelease() Experiment {
	return Experiment{
		Hazard: "late-release", Title: "a command of the release arrives late, when another request holds the lock",
		Shows: "a release that compares and deletes in two commands frees the lock of another request", Applies: claimedOrOnTrial("late-release", "redis", "redlock"),
		perform: eachCommand(1, func(held *heldCommands) procedure {
			return procedure{
				step: "written", contenderStops: "read", probe: true, contenderParams: wait(grantBound),
				inject: held.delay, judge: freedForeignLock,
				explain: func(result *Result, _ *participant) {
					if result.Verdict.Failed() {
						result.Why = joined(api.Textf("The command %[1]s, number %[2]d of the release, arrived after another request had acquired the lock.",
							"释放锁的第 %[2]d 条命令 %[1]s 到达时，锁已被另一个请求持有。", held.name(), held.nth), result.Why)
					}
				},
			}
		}),
	}
}

// crashBetween kills the holder's process before each command of its acquisition but the first.
func crashBetween() Experiment {
	return Experiment{
		Hazard: "crash-between", Title: "the process is killed between two commands of an acquisition",
		Shows: "a key that was created without its expiry is never deleted", Applies: claimedOrOnTrial("crash-between", "redis", "redlock"),
		perform: eachCommand(2, func(held *heldCommands) procedure {
			return procedure{
				step: "asked", thenAt: "granted", contenderParams: wait(grantBound), inject: held.kill,
				judge: func(p *participant) *finding {
					if p.ops[contender].Outcome == history.OK {
						return nil
					}
					return &finding{api.Stalled, Progress, api.Textf("The process was killed before its command %[1]s, number %[2]d of the acquisition. No request acquired the lock within %[3]v.",
						"进程在加锁的第 %[2]d 条命令 %[1]s 之前被杀死，此后 %[3]v 内没有请求拿到锁。", held.name(), held.nth, grantBound)}
				},
			}
		}),
	}
}

// freedForeignLock finds a third request that acquired the lock while the contender held it.
func freedForeignLock(p *participant) *finding {
	if p.ops[observer].Outcome == history.OK && p.ops[contender].Reason == "lost" {
		return &finding{api.Broken, MutualExclusion, api.Text{EN: "A third request acquired the lock while the contender held it.", ZH: "竞争者持锁时，第三个请求也拿到了锁。"}}
	}
	return nil
}

// heldCommands holds back the nth command that each Redis receives from the holder's replica.
type heldCommands struct {
	nth   int
	gates []*rig.HeldCommand
	links []*rig.Link
}

// eachCommand runs a procedure for each command from the nth on. It returns the first run that
// failed, or otherwise the last one, of each strategy.
func eachCommand(from int, procedure func(*heldCommands) procedure) func(context.Context, *round) ([]Result, error) {
	return func(ctx context.Context, r *round) (results []Result, err error) {
		for _, s := range r.subjects {
			last := r.safe(s, 0, nil)
			last.Why = api.Text{EN: "The lock sends one command, so nothing comes between.", ZH: "锁只发送一条命令，中间插不进别的命令。"}
			for nth := from; nth <= mostCommands && !last.Verdict.Failed(); nth++ {
				next := &round{Experiment: r.Experiment, bed: r.bed, seed: r.seed, subjects: []Subject{s}}
				found, err := procedure(&heldCommands{nth: nth}).perform(ctx, next)
				if err = errors.Join(err, r.bed.heal(context.WithoutCancel(ctx))); errors.Is(err, errAllSent) {
					break
				} else if err != nil {
					return results, fmt.Errorf("%s, command %d: %w", s.Name(), nth, err)
				}
				last = found[0]
			}
			results = append(results, last)
		}
		return results, ctx.Err()
	}
}

// hold holds the commands back, and lets the holder go on until one is held, or until its next step.
func (h *heldCommands) hold(ctx context.Context, r *round) error {
	h.links = r.bed.links(name(r.on[holder]), "redis")
	for _, link := range h.links {
		gate, err := link.HoldCommand(r.participants[0].key(), h.nth)
		if err != nil {
			return err
		}
		h.gates = append(h.gates, gate)
	}
	err := r.resumeToNext(ctx, func() bool { return h.name() != "" })
	if err == nil && h.name() == "" {
		err = errAllSent
	}
	return err
}

// name returns the name of a command that is held back, or "".
func (h *heldCommands) name() string {
	for _, gate := range h.gates {
		if isClosed(gate.Held()) {
			return gate.Name()
		}
	}
	return ""
}

func (h *heldCommands) delay(ctx context.Context, r *round) (fault.Heal, error) {
	err := h.hold(ctx, r)
	r.span.What, r.span.Who = "command held back", name(r.on[holder])
	return func(context.Context) error {
		for _, gate := range h.gates {
			gate.Deliver()
		}
		return nil
	}, err
}

func (h *heldCommands) kill(ctx context.Context, r *round) (fault.Heal, error) {
	if err := h.hold(ctx, r); err != nil {
		return nil, err
	}
	heal, err := killReplica(holder)(ctx, r)
	for _, link := range h.links { // loses the command that was held back
		err = errors.Join(err, link.Restore())
	}
	return heal, err
}
