package fault

import (
	"context"
	"errors"
	"time"

	"oversell/lab/rig"
)

// This file has the faults of a link from a replica to a backend.

// Cut drops all messages on the link from a replica to a backend, and notifies neither server. The
// replica still reaches its other backends, and other replicas still reach this backend. Heal ends
// the connections that were cut.
func Cut(l *rig.Link) Fault {
	f := onLink(l, "cut from "+l.To(), l.Cut)
	f.landed = unless(func() bool { return l.Dropped() > 0 }, "nothing was sent that could be dropped")
	return f
}

// onLink returns a fault that begins with arm, and ends when the link is restored.
func onLink(l *rig.Link, name string, arm func() error) Fault {
	return Fault{
		Name:   name,
		Target: l.From(),
		inject: func(context.Context) error {
			if err := arm(); err != nil {
				return errors.Join(err, l.Restore())
			}
			return nil
		},
		heal: func(context.Context) error { return l.Restore() },
	}
}

// Reset ends the connections of a replica to a backend, old and new, each at its next request. The
// request does not arrive. Unlike after Cut, the replica notices this at once.
func Reset(l *rig.Link) Fault { return onLink(l, "reset by "+l.To(), l.Reset) }

// LostReplies loses one reply on each open connection of a link, such as that to a heartbeat: the connection of
// a lock may be another one than that of the replica's own session. The backend has executed the requests, and the
// replica does not know their outcome. [Fault.Inject] only arms the fault.
func LostReplies(l *rig.Link) Fault { return lost(l, l.LoseReplies) }

// LostAnswer loses the answer to the nth command of a lock that contains text, from 1. Heartbeats and statements on
// the stock do not count. [Fault.Inject] only arms the fault.
func LostAnswer(l *rig.Link, text string, nth int) Fault {
	var gate *rig.HeldCommand
	return named(lost(l, func() (err error) { gate, err = l.LoseAnswer(text, nth); return err }), &gate)
}

// named returns the fault with the name of the command that a gate has seen.
func named(f Fault, gate **rig.HeldCommand) Fault {
	f.Command = func() string {
		if *gate == nil {
			return ""
		}
		return (*gate).Name()
	}
	f.Others = func() bool { return *gate != nil && (*gate).Count() > 0 }
	return f
}

// Disconnect ends each open connection of a link. A client can connect again at once.
func Disconnect(l *rig.Link) Fault {
	f := lost(l, l.Disconnect)
	f.Name, f.landed = "connections to "+l.To()+" end", unless(l.HasLostReply, "no connection was open")
	return f
}

func lost(l *rig.Link, arm func() error) Fault {
	f := onLink(l, "lost reply of "+l.To(), arm)
	f.landed = unless(l.HasLostReply, "no answer was dropped")
	return f
}

// Delay delays each answer of a link.
func Delay(l *rig.Link, by time.Duration) Fault {
	return onLink(l, "slow answers of "+l.To(), func() error { return l.Delay(by) })
}

// HoldCommand holds back the nth command of a lock that contains text, from 1, with all that follows it: see
// rig.HoldCommandOn. Heal delivers it, and leaves the links as they are: Restore would lose it.
func HoldCommand(text string, nth int, links ...*rig.Link) Fault {
	var held *rig.HeldCommand
	return named(Fault{
		Name: "command held back", Target: links[0].From(),
		inject: func(context.Context) (err error) {
			held, err = rig.HoldCommandOn(links, text, nth)
			return err
		},
		heal: func(context.Context) error {
			held.Deliver()
			return nil
		},
		landed: unless(func() bool { return held.Name() != "" }, "no command was held back"),
	}, &held)
}
