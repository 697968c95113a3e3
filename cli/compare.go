package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/lab/pin"
	"oversell/lab/ratio"
	"oversell/view/report"
	"oversell/view/terminal"
)

const compareLong = `Says whether A sells faster than B, and by how much. It measures both in pairs of rounds; which of
the two comes first is drawn for each pair. It ends when the 95 % interval of their ratio is narrower
than --within, after --rounds pairs at least, and begins no pair after --limit.

A and B are strategies, also with hold, outside, pause or lease, such as 'redis?hold=1ms'; or, with
--strategy, URLs of two services, or the paths of two versions of this program; or files that --json
has written: of each, side A is compared, not in pairs.

The intervals are exact and assume no distribution. A round is repeated if other processes took more
than a tenth of the cores. Without --target, it starts its own lab.

Exit status:
  0    it has measured, also if no difference is shown
  1    a request failed, the load took too much of the cores, or a lab, a side or a report failed
  2    the command line is wrong
  130  stopped by Ctrl-C, with the result until then`

type compareFlags struct {
	sides         []*side
	plan          ratio.Plan
	load          comparison.Plan
	strategy      string
	target, token string
	lab           ownLab
	quiet         bool
	files         files
}

func compareCommand() *cobra.Command {
	f := compareFlags{plan: ratio.Plan{Within: 0.05, Quiet: 0.10}}
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Measure which of two is faster, with the interval of the ratio",
		Long:  compareLong,
		Example: `  oversell compare redis redlock
  oversell compare redis 'redis?hold=1ms' --within 10%
  oversell compare bin/old bin/oversell --strategy for-update --json new.json
  oversell compare http://127.0.0.1:8080 http://127.0.0.1:9080 --strategy redis
  oversell compare old.json new.json`,
		Args: between(2, 2),
		RunE: checked(&f.files, f.check, f.run),
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *compareFlags) register(set *pflag.FlagSet) {
	set.Func("within", "wanted width of the ratio's interval, such as `5%` (the default) or 0.05", func(text string) error {
		number, percent := strings.CutSuffix(text, "%")
		within, err := strconv.ParseFloat(number, 64)
		if percent {
			within /= 100
		}
		if f.plan.Within = within; err != nil || within < 0.001 || within > 1 {
			return fmt.Errorf("--within %s: must be 0.1%% to 100%%", text)
		}
		return nil
	})
	set.IntVar(&f.plan.Least, "rounds", 10, "least number of pairs of rounds, 6 to 1000")
	set.DurationVar(&f.plan.Limit, "limit", 10*time.Minute, "begin no pair after this time")
	set.Int64Var(&f.plan.Seed, "seed", 0, "draws the order in each pair; 0 draws a seed, which is printed")
	set.DurationVar(&f.load.Length, "length", time.Second, "duration of a round, 100ms to 1m")
	set.IntVar(&f.load.Clients, "clients", 100, "number of clients that send requests at the same time")
	set.DurationVar(&f.load.Wait, "wait", time.Minute, "maximum wait of a request for the lock")
	set.StringVar(&f.strategy, "strategy", "", "the strategy of two services or programs")
	set.StringVar(&f.target, "target", "", "send the load to the lab at `URL`, and start none")
	addToken(set, &f.token, "token of the service (default $LAB_TOKEN, or "+defaultToken+")")
	f.lab.register(set)
	set.BoolVarP(&f.quiet, "quiet", "q", false, "print only the result, no progress")
	f.files.add(set, "json", "write the result with all rounds to `FILE`")
}

func (f *compareFlags) check(_ *cobra.Command, args []string) error {
	if f.plan.Least < ratio.Fewest || f.plan.Least > 1000 {
		return fmt.Errorf("--rounds %d: must be %d to 1000: fewer values have no 95 %% interval", f.plan.Least, ratio.Fewest)
	}
	if f.load.Length < 100*time.Millisecond || f.load.Length > time.Minute {
		return fmt.Errorf("--length %v: must be 100ms to 1m", f.load.Length)
	}
	if err := f.lab.check(f.target); err != nil {
		return err
	}
	f.load.Stock, f.load.Loops = comparison.MaxStock, load.MaxRequests/max(1, f.load.Clients)
	for _, text := range args {
		s, err := parseSide(text, f.strategy, f.load)
		if err != nil {
			return err
		}
		f.sides = append(f.sides, &s)
		if s.file != "" {
			continue
		}
		if s.plan.Target == "" && s.program == "" {
			s.plan.Target = f.target
			if _, err := cardsOf(s.plan.Strategies); f.target == "" && err != nil {
				return err
			}
		}
		valid := s.plan
		valid.Target = cmp.Or(valid.Target, "http://127.0.0.1:1") // any valid address: the lab does not run yet
		if err := valid.Validate(); err != nil {
			return err
		}
	}
	if (f.sides[0].file == "") != (f.sides[1].file == "") {
		return errors.New("a file is compared with another file only")
	}
	return nil
}

func (f *compareFlags) run(ctx context.Context, out, errOut io.Writer) (err error) {
	sides, text := f.sides, f.files.textOutput(out, errOut)
	if sides[0].file != "" {
		return compareFiles(sides, text)
	}
	f.plan.Seed, f.token = cmp.Or(f.plan.Seed, drawnSeed()), cmp.Or(f.token, defaultToken)
	machine, cores := measure.Machine{Cores: runtime.NumCPU()}, []int(nil)
	ownLab := sides[0].plan.Target == "" && sides[1].plan.Target == ""
	if ownLab {
		if machine.LoadCores, cores, err = pin.Apart(); err != nil {
			return err
		}
	}
	closeLabs, err := f.openLabs(ctx, sides, cores, errOut)
	defer func() { err = errors.Join(err, closeLabs()) }()
	if err != nil {
		return err
	}
	for _, s := range sides { // the first requests of a replica also open its connections
		if _, err := s.subject(ownLab).Round(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	progress := func(r ratio.Result) {
		if !f.quiet {
			_, _ = fmt.Fprintln(errOut, report.RatioProgress(r))
		}
	}
	result, err := ratio.Measure(ctx, f.plan, sides[0].subject(ownLab), sides[1].subject(ownLab), progress)
	if len(result.Pairs) < ratio.Fewest {
		return err
	}
	if share := result.Load(); share > machine.MostLoad() {
		err = errors.Join(err, fmt.Errorf("the load took %.0f %% of the cores, so the rates are partly its own: use fewer clients, or another machine for the load", 100*share))
	}
	report.Ratio(text, result, terminal.Of(text), language())
	return errors.Join(err, f.files.write(map[string]func(io.Writer) error{
		"json": func(w io.Writer) error { return report.WriteLines(w, result) },
	}, out, errOut))
}

// compareFiles compares the sides A of two files. Their rounds are not pairs: other programs ran at these times.
func compareFiles(sides []*side, out io.Writer) error {
	var all [2][]ratio.Round
	for i, s := range sides {
		name, rounds, err := readRounds(s.file)
		if err != nil {
			return err
		}
		s.name, all[i] = fmt.Sprintf("%s (%s)", name, s.file), rounds
	}
	report.Ratio(out, ratio.Apart(sides[0].name, sides[1].name, all[0], all[1]), terminal.Of(out), language())
	return nil
}
