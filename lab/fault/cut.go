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
	return Fault{
		Name:   "cut from " + l.To(),
		Target: l.From(),
		inject: func(context.Context) error {
			if err := l.Cut(); err != nil {
				return errors.Join(err, l.Restore())
			}
			return nil
		},
		heal:   func(context.Context) error { return l.Restore() },
		landed: unless(func() bool { return l.Dropped() > 0 }, "nothing was sent that could be dropped"),
	}
}
