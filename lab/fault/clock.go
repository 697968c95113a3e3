package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// ClockJump sets the clock of a Redis ahead by an offset, or back if that is negative. Keys
// expire by that clock: after a jump of ten seconds, a lease of ten seconds has expired. Heal
// sets the clock right again; keys that expired stay deleted. The rig needs Config.Clocks.
func ClockJump(s *rig.Server, offset time.Duration) Fault {
	return Fault{
		Name:   fmt.Sprintf("clock jumps by %s", offset),
		Target: s.Name(),
		inject: func(context.Context) error { return s.SetClock(offset) },
		heal:   func(context.Context) error { return s.SetClock(0) },
		landed: func(ctx context.Context) error {
			return withRedis(s, func(c *redis.Client) error {
				at, err := c.Time(ctx).Result()
				if off := time.Until(at) - offset; err == nil && off.Abs() > offset.Abs()/2 {
					err = fmt.Errorf("its clock is %v from the machine's", time.Until(at).Round(time.Second))
				}
				return err
			})
		},
	}
}
