package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"oversell/lab/comparison"
	"oversell/lab/load"
)

// registerLoops adds the flags that say when a request is sent, and by how many.
func (f *runFlags) registerLoops(flags *pflag.FlagSet) {
	flags.DurationVar(&f.plan.RampUp, "ramp-up", 0, "time over which the clients start, evenly spread")
	flags.Var(rateFlag{&f.plan.Rate}, "rate", "an open loop: requests are due at this `RATE`, such as 2000/s or 90/m, whatever the answers do;\nclients is then how many can be under way at once, and clients x loops how many are sent")
	flags.Var(sweepFlag{&f.plan.Sweep}, "sweep", "a run of 5 s for each number of clients in `RANGE`, such as clients=1..500, and where the curve bends")
}

// rateFlag is --rate.
type rateFlag struct{ rate *load.Rate }

func (f rateFlag) Set(text string) (err error) {
	*f.rate, err = load.ParseRate(text)
	return err
}

func (f rateFlag) String() string {
	if f.rate == nil || *f.rate == 0 {
		return ""
	}
	return f.rate.String()
}

func (rateFlag) Type() string { return "RATE" }

// sweepFlag is --sweep.
type sweepFlag struct{ clients *[]int }

func (f sweepFlag) Set(text string) error {
	bounds, ok := strings.CutPrefix(text, "clients=")
	low, high, cut := strings.Cut(bounds, "..")
	from, err := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if !ok || !cut || err != nil || err2 != nil || from < 1 || to < from || to > load.MaxClients {
		return fmt.Errorf("sweep %q: want one such as clients=1..500, from 1 to %d", text, load.MaxClients)
	}
	*f.clients = comparison.Steps(from, to)
	return nil
}

func (f sweepFlag) String() string {
	if f.clients == nil || len(*f.clients) == 0 {
		return ""
	}
	all := *f.clients
	return fmt.Sprintf("clients=%d..%d", all[0], all[len(all)-1])
}

func (sweepFlag) Type() string { return "RANGE" }

// checkSweep refuses what a sweep decides itself.
func (f *runFlags) checkSweep(set *pflag.FlagSet) error {
	if len(f.plan.Sweep) == 0 {
		return nil
	}
	for _, name := range []string{"clients", "loops", "stock", "rate", "ramp-up", "all"} {
		if set.Changed(name) {
			return fmt.Errorf("run: --%s: not with --sweep, which is a closed loop of its own clients, loops and stock", name)
		}
	}
	if f.files.csv != "" {
		return errors.New("run: --csv: not with --sweep, whose runs would all have one label")
	}
	if len(f.plan.Strategies) == 0 {
		return errors.New("run: --sweep takes a minute for each strategy: name them")
	}
	return nil
}
