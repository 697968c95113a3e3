package cli

import (
	"fmt"
	"io"
	"time"

	"oversell/lab/comparison"
	"oversell/view/terminal"
)

// drainTime is the drain of a replica behind our nginx. nginx stops sending requests to a replica
// when the replica has rejected one, which takes milliseconds under load.
const drainTime = 500 * time.Millisecond

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
