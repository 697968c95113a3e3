package fault

import "oversell/lab/rig"

// LostReplies loses one reply on each open connection of a link, such as that to a heartbeat: the connection of
// a lock may be another one than that of the replica's own session. The backend has executed the requests, and the
// replica does not know their outcome. [Fault.Inject] only arms the fault.
func LostReplies(l *rig.Link) Fault { return lost(l, l.LoseReplies) }

// LostAnswer loses the answer to the nth command of a lock that contains text, from 1. Heartbeats and statements on
// the stock do not count. [Fault.Inject] only arms the fault.
func LostAnswer(l *rig.Link, text string, nth int) Fault {
	return lost(l, func() error { _, err := l.LoseAnswer(text, nth); return err })
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
