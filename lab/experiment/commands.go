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
	nth   int
	gates []*rig.HeldCommand
	links []*rig.Link
}

// eachCommand performs an experiment for each command from the nth on. It returns the first run that
// failed, or otherwise the last one, of each strategy.
func eachCommand(from int, hold func(*Experiment, *heldCommands)) func(context.Context, *round) ([]Result, error) {
	return func(ctx context.Context, r *round) (results []Result, err error) {
		for _, s := range r.subjects {
			last := r.safe(s, 0, nil)
			last.Verdict = api.Inconclusive // until a command was seen, or that there is none
			last.Why = api.Text{EN: "No command of the lock was seen.", ZH: "没有看到锁的任何命令。"}
			for nth := from; nth <= mostCommands && !last.Verdict.Failed(); nth++ {
				next := r.with(s)
				hold(&next.Experiment, &heldCommands{nth: nth})
				found, err := next.once(ctx)
				if err = errors.Join(err, r.bed.heal(context.WithoutCancel(ctx))); errors.Is(err, errAllSent) {
					if nth == from && from > 1 && next.sawFirst {
						last.Verdict, last.Why = api.Safe, api.Text{EN: "The lock sends one command, so nothing comes between.", ZH: "锁只发送一条命令，中间插不进别的命令。"}
					}
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
	if !r.bed.idle {
		h.links = r.lockLinks()
	}
	for _, link := range h.links {
		gate, err := link.HoldCommand(r.lockText(), h.nth)
		if err != nil {
			return err
		}
		h.gates = append(h.gates, gate)
	}
	err := r.resumeToNext(ctx, func() bool { return h.name() != "" })
	if err == nil && h.name() == "" {
		err = h.allSent(r)
	}
	return err
}

// allSent is the error when the nth command did not come.
func (h *heldCommands) allSent(r *round) error {
	r.sawFirst = slices.ContainsFunc(h.gates, func(g *rig.HeldCommand) bool { return g.Count() > 0 })
	return errAllSent
}

// lockText is part of each command of our strategies. A program may send any names, but nothing else runs on a
// replica with a lock on trial.
func (r *round) lockText() string {
	if p := r.participants[0]; !p.Card.onTrial() {
		return p.key()
	}
	return ""
}

// lockLinks returns the links from the holder's replica to the servers of its lock. The round has one strategy.
func (r *round) lockLinks() []*rig.Link {
	service := r.participants[0].Card.lockService()
	links := r.bed.links(name(r.on[holder]), service)
	if service == "postgres" {
		links = append(links, r.bed.links(name(r.on[holder]), "pgbouncer")...)
	}
	return links
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
