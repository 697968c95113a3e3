package fault

import "oversell/lab/rig"

// Reset ends the connections of a replica to a backend, old and new, each at its next request. The
// request does not arrive. Unlike after Cut, the replica notices this at once.
func Reset(l *rig.Link) Fault { return onLink(l, "reset by "+l.To(), l.Reset) }
