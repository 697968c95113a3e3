package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// This file has the faults of one server.

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

// Restart stops a server gracefully and starts it again at once, as an update does. The fault is
// over when Inject returns: Heal does nothing unless the server ended later.
func Restart(s *rig.Server) Fault {
	before := s.PID()
	return Fault{
		Name:   "restart",
		Target: s.Name(),
		inject: func(ctx context.Context) error {
			if err := s.Stop(ctx); err != nil {
				return err
			}
			return s.BringUp(ctx)
		},
		heal:   s.BringUp,
		landed: unless(func() bool { return s.PID() != before }, "it was not restarted"),
	}
}

// ProgramClock sets the clock of the programs that a replica starts ahead by an offset, and starts the replica again. Heal
// does the same without the offset. It has landed if the programs have read this clock: see rig.Server.FollowsProgramClock.
func ProgramClock(s *rig.Server, offset time.Duration) Fault {
	again := func(offset time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := s.SetProgramClock(offset); err != nil {
				return err
			}
			_, err := Restart(s).Inject(ctx)
			return err
		}
	}
	return Fault{
		Name: fmt.Sprintf("clock jumps by %s", offset), Target: s.Name(),
		inject: again(offset), heal: again(0),
		landed: func(context.Context) error { return s.FollowsProgramClock() },
	}
}

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
