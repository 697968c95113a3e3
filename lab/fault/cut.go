package fault

import (
	"context"
	"errors"

	"oversell/lab/rig"
)

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
