package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"oversell/lab/comparison"
	"oversell/lab/rig"
	"oversell/view/terminal"
)

// drainTime is the drain of a replica behind our nginx. nginx stops sending requests to a replica
// when the replica has rejected one, which takes milliseconds under load.
const drainTime = 500 * time.Millisecond

// rollingArgs are flags of the replicas. With such long leases and sessions, a lock that a replica
// leaves behind outlasts the wait of all requests. So these fail, and the loss is not overlooked.
func rollingArgs() []string {
	return []string{"--drain", drainTime.String(), "--lease", "2m", "--zk-session", "60s"}
}

// restartDuringRuns restarts all replicas during the run of each strategy.
func (f *runFlags) restartDuringRuns(lab *rig.Rig) {
	f.plan.During = func(ctx context.Context) error {
		return lab.RollingRestart(ctx, func(*rig.Server) { f.restarts++ })
	}
}

// showRolling prints the sum of all runs with a rolling restart.
func showRolling(out io.Writer, measurements []comparison.Measurement, restarts int) {
	requests, failed, left := 0, 0, 0
	for _, t := range measurements {
		requests += t.Result.Samples
		failed += t.Result.Errors
		if t.LeftBehind != "" {
			left++
		}
	}
	fmt.Fprintf(out, "\nrolling restart: %s requests, %s failed, %s restarts, %s locks left behind\n",
		terminal.Number(requests), terminal.Number(failed), terminal.Number(restarts), terminal.Number(left))
}
