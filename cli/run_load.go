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
		return fmt.Errorf("sweep %q: must be a range such as clients=1..500, from 1 to %d", text, load.MaxClients)
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

// checkSweep rejects the flags that a sweep replaces.
func (f *runFlags) checkSweep(set *pflag.FlagSet) error {
	if len(f.plan.Sweep) == 0 {
		return nil
	}
	for _, name := range []string{"clients", "loops", "stock", "rate", "ramp-up", "all"} {
		if set.Changed(name) {
			return fmt.Errorf("--%s cannot be used with --sweep, which sets its own clients, loops and stock", name)
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
