package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// The experiments late-release and crash-between strike between two commands of a lock. A program does not report
// its commands, but the link to its server shows them, whatever their names are: nothing else on this replica runs
// then. So each command in turn is held back: the first, the second, and so on, until the lock sends no more.

// mostCommands limits the commands of an acquisition or of a release, for a lock that never ends.
const mostCommands = 8

// errAllSent is the error of a run whose lock sends fewer commands.
var errAllSent = errors.New("the lock sends fewer commands")

// heldCommands holds back the nth command that each server of the lock receives from the holder's replica.
type heldCommands struct {
	nth     int
	gates   []*rig.HeldCommand
	links   []*rig.Link
	first   bool // the lock sent a command, and never the nth
	refused bool // the lock was not granted because of late answers
}

// eachCommand performs an experiment for each command from the nth on, until a run is over. It returns the last run of
// each strategy.
func eachCommand(from int, over func(api.Verdict) bool, hold func(*Experiment, *heldCommands)) func(context.Context, *round) ([]Result, error) {
	return func(ctx context.Context, r *round) (results []Result, err error) {
		for _, s := range r.subjects {
			last := r.safe(s, 0, nil)
			last.Verdict = api.Inconclusive // until a command was seen, or that there is none
			last.Why = api.Text{EN: "No command of the lock was seen.", ZH: "没有看到锁的任何命令。"}
			refused := false
			for nth := from; nth <= mostCommands && !over(last.Verdict); nth++ {
				next, held := r.with(s), &heldCommands{nth: nth}
				hold(&next.Experiment, held)
				found, err := next.once(ctx)
				if err = errors.Join(err, r.bed.heal(context.WithoutCancel(ctx))); errors.Is(err, errAllSent) {
					if nth == from && from > 1 && held.first {
						last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock sends one command, so nothing comes between.", ZH: "锁只发送一条命令，中间插不进别的命令。"}
					}
					break
				} else if err != nil {
					return results, fmt.Errorf("%s, command %d: %w", s.Name(), nth, err)
				}
				last, refused = found[0], held.refused
			}
			if refused && !decided(last.Verdict) {
				last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock was not granted while its answers were late.", ZH: "应答迟到时，锁没有授予。"}
			}
			results = append(results, last)
		}
		return results, ctx.Err()
	}
}

func decided(v api.Verdict) bool { return v != api.Inconclusive }

// arm holds back the nth command of a role from now on.
func (h *heldCommands) arm(r *round, part int) error {
	h.links = r.lockLinks(part)
	for _, link := range h.links {
		gate, err := link.HoldCommand(r.lockText(), h.nth)
		if err != nil {
			return err
		}
		h.gates = append(h.gates, gate)
	}
	return nil
}

func (h *heldCommands) deliver() {
	for _, gate := range h.gates {
		gate.Deliver()
	}
}

// afterRenewal injects a fault just after the holder has renewed its lock: then the next commands are its release's.
func afterRenewal(inject func(context.Context, *round) (fault.Heal, error)) func(context.Context, *round) (fault.Heal, error) {
	return func(ctx context.Context, r *round) (fault.Heal, error) {
		if r.participants[0].Card.Renews && r.participants[0].Card.onTrial() {
			renewal := &heldCommands{nth: 1}
			if err := renewal.arm(r, holder); err != nil {
				return nil, err
			}
			_ = within(ctx, Lease/2, "a renewal", func() bool { // on all servers, if there are several
				return !slices.ContainsFunc(renewal.gates, func(g *rig.HeldCommand) bool { return g.Name() == "" })
			})
			renewal.deliver()
			if err := restore(renewal.links)(ctx); err != nil {
				return nil, err
			}
		}
		return inject(ctx, r)
	}
}

// hold holds the commands back, and lets the holder go on until one is held, or until its next step.
func (h *heldCommands) hold(ctx context.Context, r *round) error {
	if err := h.arm(r, holder); err != nil {
		return err
	}
	err := r.resumeToNext(ctx, func() bool { return h.name() != "" })
	if err == nil && h.name() == "" {
		err = h.allSent()
	}
	return err
}

// allSent is the error when the nth command did not come.
func (h *heldCommands) allSent() error {
	h.first = h.sawCommand()
	return errAllSent
}

func (h *heldCommands) sawCommand() bool {
	return slices.ContainsFunc(h.gates, func(g *rig.HeldCommand) bool { return g.Count() > 0 })
}

// lockText is part of each command of our strategies. A program may send any names, but nothing else runs on a
// replica with a lock on trial.
func (r *round) lockText() string {
	if p := r.participants[0]; !p.Card.onTrial() {
		return p.key()
	}
	return ""
}

// lockLinks returns the links from the replica of a role to the servers of its lock. The round has one strategy.
func (r *round) lockLinks(part int) []*rig.Link {
	if r.bed.idle {
		return nil
	}
	service := r.participants[0].Card.lockService()
	links := r.bed.links(name(r.on[part]), service)
	if service == "postgres" {
		links = append(links, r.bed.links(name(r.on[part]), "pgbouncer")...)
	}
	return links
}

// injectOnLock injects a fault into each link from the replica of a role to the servers of its lock.
func (r *round) injectOnLock(ctx context.Context, part int, of func(*rig.Link) fault.Fault) (fault.Heal, error) {
	var faults []fault.Fault
	for _, link := range r.lockLinks(part) {
		faults = append(faults, of(link))
	}
	if len(faults) == 0 {
		r.missed = errors.New("there is no link to a server of the lock")
	}
	return r.injectAll(ctx, faults...)
}

// name returns the name of a command that is held back, or "".
func (h *heldCommands) name() string {
	for _, gate := range h.gates {
		if name := gate.Name(); name != "" {
			return name
		}
	}
	return ""
}

func (h *heldCommands) delay(ctx context.Context, r *round) (fault.Heal, error) {
	err := h.hold(ctx, r)
	r.span.What, r.span.Who = "command held back", name(r.on[holder])
	return func(context.Context) error { h.deliver(); return nil }, err
}

// arrivedLate names the command of an acquisition or a release that did harm, since it arrived late.
func (h *heldCommands) arrivedLate(of api.Text) func(*Result, *participant) {
	return func(result *Result, _ *participant) {
		if result.Verdict.Failed() {
			result.Why = api.Joined(api.Textf("The command %[1]s, number %[2]d of the %[3]s, arrived after another request had acquired the lock.",
				"%[4]s的第 %[2]d 条命令 %[1]s 到达时，锁已被另一个请求持有。", h.name(), h.nth, of.EN, of.ZH), result.Why)
		}
	}
}

func (h *heldCommands) kill(ctx context.Context, r *round) (fault.Heal, error) {
	if err := h.hold(ctx, r); err != nil {
		return nil, err
	}
	heal, err := killReplica(holder)(ctx, r)
	return heal, errors.Join(err, restore(h.links)(ctx)) // loses the command that was held back
}
