package fault

import (
	"context"

	"oversell/lab/rig"
)

// Stop pauses a server and its children (SIGSTOP), as a long garbage collection or a suspended
// machine does. Its connections stay open, and requests get no answer. After it resumes, the
// server does not notice the pause.
func Stop(s *rig.Server) Fault {
	return Fault{
		Name:   "stop",
		Target: s.Name(),
		inject: func(context.Context) error { return s.Pause() },
		heal:   func(context.Context) error { return s.Resume() },
		landed: unless(s.Frozen, "a thread of it runs"),
	}
}
