package fault

import (
	"context"
	"fmt"
	"time"

	"oversell/lab/rig"
)

// ClockJump sets the clock of a Redis ahead by By, or back if that is negative. Keys
// expire by that clock: a lease of ten seconds is over at once after a jump of ten. The
// rig needs Config.Clocks.
type ClockJump struct {
	Server *rig.Server
	By     time.Duration
}

// Name implements [Fault].
func (c ClockJump) Name() string { return fmt.Sprintf("clock jumps by %s", c.By) }

// Who implements [Fault].
func (c ClockJump) Target() string { return c.Server.Name() }

// Inject implements [Fault]. When it is healed, the clock is right again; what expired
// stays gone.
func (c ClockJump) Inject(context.Context) (Heal, error) {
	if err := c.Server.SetClock(c.By); err != nil {
		return nil, err
	}
	return once(func(context.Context) error { return c.Server.SetClock(0) }), nil
}
