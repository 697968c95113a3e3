package fault

import (
	"context"

	"oversell/lab/rig"
)

// Reset ends the connections of a replica to a backend, old and new, each at its next request. The
// request does not arrive. Unlike after Cut, the replica notices this at once.
func Reset(l *rig.Link) Fault {
	return Fault{
		Name:   "reset by " + l.To(),
		Target: l.From(),
		inject: func(context.Context) error { return l.Reset() },
		heal:   func(context.Context) error { return l.Restore() },
	}
}
