package fault

import (
	"context"

	"oversell/lab/rig"
)

// Restart stops a server gracefully and starts it again at once, as an update does. The fault is
// over when Inject returns: Heal does nothing unless the server ended later.
func Restart(s *rig.Server) Fault {
	return Fault{
		Name:   "restart",
		Target: s.Name(),
		inject: func(ctx context.Context) error {
			if err := s.Stop(ctx); err != nil {
				return err
			}
			return s.BringUp(ctx)
		},
		heal: s.BringUp,
	}
}
