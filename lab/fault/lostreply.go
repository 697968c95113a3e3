package fault

import (
	"context"

	"oversell/lab/rig"
)

// LostReply loses one reply of a backend. The backend has executed the request, the connection
// ends, and the replica does not know the outcome. [Fault.Inject] only arms the fault: the next
// reply that contains text is lost, even one to an earlier request. An empty text means any reply,
// even one to a heartbeat.
func LostReply(l *rig.Link, text string) Fault {
	return Fault{
		Name:   "lost reply of " + l.To(),
		Target: l.From(),
		inject: func(context.Context) error { return l.LoseReply(text) },
		heal:   func(context.Context) error { return l.Restore() },
		landed: unless(l.HasLostReply, "no answer was dropped"),
	}
}

// LostReplies loses one reply on each open connection of a link, such as that to a heartbeat: the connection of
// a lock may be another one than that of the replica's own session. [Fault.Inject] only arms the fault.
func LostReplies(l *rig.Link) Fault {
	f := LostReply(l, "")
	f.inject = func(context.Context) error { return l.LoseReplies() }
	return f
}

// LostAnswer loses the answer to the nth command of a lock that contains text, from 1. Heartbeats and statements on
// the stock do not count. [Fault.Inject] only arms the fault.
func LostAnswer(l *rig.Link, text string, nth int) Fault {
	f := LostReply(l, "")
	f.inject = func(context.Context) error { _, err := l.LoseAnswer(text, nth); return err }
	return f
}
