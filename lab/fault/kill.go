package fault

import (
	"context"
	"fmt"

	"oversell/lab/rig"
)

// Kill ends a server at once (SIGKILL). Heal starts the server again, and a replica must reach its
// backends. A Redis has lost its data. A ZooKeeper of an ensemble serves only with a majority, so
// after the loss of a majority, heal the servers concurrently.
func Kill(s *rig.Server) Fault {
	return Fault{
		Name:   "kill",
		Target: s.Name(),
		inject: func(context.Context) error {
			if s.PID() == 0 {
				return fmt.Errorf("kill %s: it is not running", s.Name())
			}
			s.Kill()
			return nil
		},
		heal:   s.BringUp,
		landed: unless(func() bool { return s.PID() == 0 }, "it runs"),
	}
}
