package fault

import (
	"context"
	"fmt"

	"oversell/lab/rig"
)

// Kill ends a server at once (SIGKILL). Heal starts it again; a replica is back when it reaches
// its backends. A Redis has lost its data. A ZooKeeper of an ensemble serves only with a
// majority: without one, heal the servers concurrently.
type Kill struct{ Server *rig.Server }

// Name implements [Fault].
func (Kill) Name() string { return "kill" }

// Target implements [Fault].
func (k Kill) Target() string { return k.Server.Name() }

// Inject implements [Fault].
func (k Kill) Inject(context.Context) (Heal, error) {
	if k.Server.PID() == 0 {
		return nil, fmt.Errorf("kill %s: it is not running", k.Server.Name())
	}
	k.Server.Kill()
	return once(func(ctx context.Context) error { return bringUp(ctx, k.Server) }), nil
}

// bringUp starts a server, unless it is running, and returns when it serves.
func bringUp(ctx context.Context, s *rig.Server) error {
	if s.PID() == 0 {
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return s.AwaitReady(ctx)
}
