package fault

import (
	"context"

	"oversell/lab/rig"
)

// Restart stops a server gracefully and starts it again at once, as an update does. Heal only
// retries a start that failed.
type Restart struct{ Server *rig.Server }

// Name implements [Fault].
func (Restart) Name() string { return "restart" }

// Target implements [Fault].
func (r Restart) Target() string { return r.Server.Name() }

// Inject implements [Fault]. It returns when the server serves again.
func (r Restart) Inject(ctx context.Context) (Heal, error) {
	if err := r.Server.Stop(ctx); err != nil {
		return nil, err
	}
	if err := bringUp(ctx, r.Server); err != nil {
		return nil, err
	}
	return once(func(ctx context.Context) error { return bringUp(ctx, r.Server) }), nil
}
