package fault

import (
	"context"
	"fmt"
	"time"

	"oversell/lab/rig"
)

// ClockJump sets the clock of a Redis ahead by By, or back if that is negative. Keys expire by
// that clock: after a jump of ten seconds, a lease of ten seconds has expired. The rig needs
// Config.Clocks.
type ClockJump struct {
	Server *rig.Server
	By     time.Duration
}

// Name implements [Fault].
func (c ClockJump) Name() string { return fmt.Sprintf("clock jumps by %s", c.By) }

// Target implements [Fault].
func (c ClockJump) Target() string { return c.Server.Name() }

// Inject implements [Fault]. Heal sets the clock right again; keys that expired stay deleted.
func (c ClockJump) Inject(context.Context) (Heal, error) {
	if err := c.Server.SetClock(c.By); err != nil {
		return nil, err
	}
	return once(func(context.Context) error { return c.Server.SetClock(0) }), nil
}
