package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/check"
	"oversell/lab/comparison"
	"oversell/lab/history"
	"oversell/lab/report"
	"oversell/locks/catalog"
)

// classToken is what a lab takes unless it was told another.
const classToken = "classroom"

// statusInterrupted is the exit status of a run that Ctrl-C ended, as shells have it.
const statusInterrupted = 130

// runFlags are the flags of `oversell run`.
type runFlags struct {
	plan     comparison.Plan
	token    string
	replicas int
	files    reportFiles
	quiet    bool
}

func runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run [strategy...]",
		Short: "Run the same load against one strategy after the other",
		Long: `Sets the stock, lets the clients buy, and compares what was sold with what is left,
for each strategy in turn: those named, the eight best known, or with --all the whole
ladder (then with a fifth of the requests for those that poll). Without --target it brings up a lab of
its own for the time of the run; with --target it loads one that is running.

The table and the sentences go to stdout, everything else to stderr. A report FILE is
either written whole or not at all; - means stdout, and the table then goes to stderr.

Without --rate the loop is closed, as JMeter's: each client waits for its answer before
it asks again, so whoever is slow is asked less. With --rate it is open, as customers
are: they come when they come, and times count from when a request was due, also when
all connections were busy then.

Exit status:
  0    all runs completed; that an unsafe strategy lost updates is its lesson, no failure
  1    a strategy whose card claims safety lost an update, a request failed, or a run or
       a report could not be finished
  2    the command line cannot be run as it stands
  130  stopped by Ctrl-C; what was measured until then is shown, marked as partial
       (a second Ctrl-C ends at once)`,
		Example: `  oversell run
  oversell run --all
  oversell run none redis --clients 50 --html result.html
  oversell run redis --rate 500/s --loops 100
  oversell run version for-update --sweep clients=1..500 --html curve.html
  oversell run redis --target http://127.0.0.1:8080 --json - | jq '.[0].lost_updates'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.plan.Strategies = args
			if flags.plan.All && len(args) > 0 {
				return &exit{2, errors.New("run: --all runs every strategy; name none beside it")}
			}
			if flags.plan.Target != "" && cmd.Flags().Changed("replicas") {
				return &exit{2, errors.New("run: --replicas is for a lab of its own; the one at --target has its replicas already")}
			}
			if err := flags.checkSweep(cmd.Flags()); err != nil {
				return &exit{2, err}
			}
			return flags.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.plan.All, "all", false, "run the whole ladder")
	f.IntVar(&flags.plan.Clients, "clients", 100, "clients that buy at the same time")
	f.IntVar(&flags.plan.Loops, "loops", 50, "requests of each client, one after the other")
	flags.registerLoops(f)
	f.IntVar(&flags.plan.Qty, "qty", 1, "pieces that each request buys")
	f.IntVar(&flags.plan.Stock, "stock", 5000, "pieces on the shelf before each run")
	f.DurationVar(&flags.plan.Hold, "hold", 0, "extra time inside the critical section, as if there were more work")
	f.DurationVar(&flags.plan.Wait, "wait", 10*time.Second, "patience of a request in the lock's queue")
	f.StringVar(&flags.plan.Target, "target", "", "load the lab at `URL` instead of a new one")
	f.StringVar(&flags.token, "token", os.Getenv("LAB_TOKEN"), "token of the lab at --target (default $LAB_TOKEN, or "+classToken+")")
	f.Lookup("token").DefValue = "" // not the environment's, which help would print
	f.Int64Var(&flags.plan.Seed, "seed", 0, "draws the order in which the clients start; 0: one is drawn, and printed")
	f.IntVar(&flags.replicas, "replicas", 3, "replicas of the lab of its own, 1 to 50")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "no progress, only the result")
	flags.files.register(f)
	return withScenarios(cmd)
}

// run does it all, in the order in which mistakes are cheapest.
func (f *runFlags) run(ctx context.Context, out, errOut io.Writer) error {
	ctx, restore := signal.NotifyContext(ctx, labSignals()...)
	defer restore()
	context.AfterFunc(ctx, restore) // so the second Ctrl-C ends us on the spot

	if err := f.check(); err != nil {
		return &exit{2, err}
	}
	if err := f.files.check(); err != nil {
		return err
	}
	closeLab, err := f.openLab(ctx, errOut)
	if err != nil {
		return ended(ctx, fmt.Errorf("run: %w", err))
	}
	trials, ran := f.load(ctx, errOut)
	told := f.tell(trials, out, errOut)
	err = verdict(trials, ran)
	if errors.Is(ran, comparison.ErrPlan) {
		err = &exit{2, fmt.Errorf("run: %w", ran)}
	}
	if failed := errors.Join(told, closeLab()); failed != nil {
		err = errors.Join(err, failed)
	}
	return ended(ctx, err)
}

// ended makes the status 130 of whatever came of a stopped run.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped")
	}
	return &exit{statusInterrupted, err}
}

// check finds what can't be run before anything is started.
func (f *runFlags) check() error {
	plan := f.plan
	if plan.Target == "" {
		plan.Target = "http://127.0.0.1:1" // a place-holder: the lab has none yet
		if f.replicas < 1 || f.replicas > 50 {
			return fmt.Errorf("run: replicas %d: must be 1 to 50", f.replicas)
		}
		if err := known(plan.Strategies); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
	if plan.Qty < 1 {
		return fmt.Errorf("run: qty %d: must be 1 to 100", plan.Qty)
	}
	if err := plan.Validate(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// known checks the names against this program's own ladder, which its own lab has.
func known(wanted []string) error {
	ladder := map[string]bool{}
	var ids []string
	for _, s := range catalog.Strategies(catalog.Backends{}) {
		ids = append(ids, s.Card().ID)
		ladder[s.Card().ID] = true
	}
	for _, id := range wanted {
		if !ladder[id] {
			return fmt.Errorf("strategy %q does not exist: there are %s", id, strings.Join(ids, ", "))
		}
	}
	return nil
}

func (f *runFlags) load(ctx context.Context, errOut io.Writer) ([]comparison.Trial, error) {
	watcher := newWatcher(errOut, f.quiet)
	defer watcher.close()
	return comparison.Run(ctx, f.plan, watcher)
}

// tell shows the results and writes the report files.
func (f *runFlags) tell(trials []comparison.Trial, out, errOut io.Writer) error {
	if len(trials) == 0 {
		return nil
	}
	results := make([]report.Result, len(trials))
	histories := make([]history.History, len(trials))
	for i, t := range trials {
		results[i], histories[i] = t.Result, t.History
	}
	reader := out
	if f.files.stdout() {
		reader = errOut
	}
	inChinese := chinese()
	if len(f.plan.Sweep) > 0 {
		curves := report.Curves(results)
		err := errors.Join(
			report.CurveTables(reader, curves, screenOf(reader), inChinese),
			line(reader),
			report.CurveConditions(reader, results),
		)
		return errors.Join(err, f.files.writeCurves(curves, out, errOut))
	}
	err := errors.Join(
		report.Table(reader, results, screenOf(reader)),
		report.Sentences(reader, results, inChinese),
		line(reader),
		report.Conditions(reader, results),
	)
	return errors.Join(err, f.files.write(results, histories, out, errOut))
}

// chinese says whether the reader's environment asks for it.
func chinese() bool {
	return strings.HasPrefix(os.Getenv("LC_ALL")+os.Getenv("LC_MESSAGES")+os.Getenv("LANG"), "zh")
}

func line(w io.Writer) error {
	_, err := fmt.Fprintln(w)
	return err
}

// verdict is the exit status: see the command's help.
func verdict(trials []comparison.Trial, ran error) error {
	var broken, failed []string
	for _, t := range trials {
		if t.Result.Safe && t.Result.Verdict == check.Broken {
			broken = append(broken, t.Result.Strategy)
		}
		if t.Result.Errors > 0 {
			failed = append(failed, fmt.Sprintf("%s (%d)", t.Result.Strategy, t.Result.Errors))
		}
	}
	var all []error
	if ran != nil {
		all = append(all, fmt.Errorf("run: %w", ran))
	}
	if len(broken) > 0 {
		all = append(all, fmt.Errorf("run: claimed to be safe, and was not: %s", strings.Join(broken, ", ")))
	}
	if len(failed) > 0 {
		all = append(all, fmt.Errorf("run: requests failed: %s", strings.Join(failed, ", ")))
	}
	return errors.Join(all...)
}
