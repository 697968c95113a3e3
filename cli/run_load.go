package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/view/terminal"
)

// parseSweep returns the numbers of clients to try, from a range such as clients=1..500.
func parseSweep(text string) ([]int, error) {
	bounds, ok := strings.CutPrefix(text, "clients=")
	low, high, cut := strings.Cut(bounds, "..")
	from, err := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if !ok || !cut || err != nil || err2 != nil || from < 1 || to < from || to > load.MaxClients {
		return nil, fmt.Errorf("sweep %q: must be a range such as clients=1..500, with both ends between 1 and %d", text, load.MaxClients)
	}
	return comparison.Steps(from, to), nil
}

func (f *runFlags) checkSweep(set *pflag.FlagSet) error {
	if len(f.plan.Sweep) == 0 {
		return nil
	}
	for _, name := range []string{"clients", "loops", "stock", "rate", "ramp-up", "all", "jmeter"} {
		if set.Changed(name) {
			return fmt.Errorf("--%s cannot be used with --sweep, which sets its own clients, loops, stock and table", name)
		}
	}
	if set.Changed("csv") {
		return errors.New("--csv cannot be used with --sweep, because all its runs would have the same label")
	}
	if len(f.plan.Strategies) == 0 {
		return errors.New("--sweep takes a minute for each strategy: name the strategies")
	}
	return nil
}

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
