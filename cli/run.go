package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/comparison"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/lab/pin"
	"oversell/lab/rig"
	"oversell/lab/scenario"
	"oversell/lab/suggest"
	"oversell/locks/catalog"
	"oversell/view/report"
	"oversell/view/terminal"
)

// defaultToken is the token of a lab that Docker runs.
const defaultToken = "classroom"

type runFlags struct {
	plan     comparison.Plan
	lab      ownLab
	rolling  bool // restart the replicas one after the other during each run
	restarts int  // of replicas until now
	started  bool // it has its own lab
	files    files
	jmeter   bool
	quiet    bool
}

const runLong = `Sets the stock, sends the requests of all clients, and compares the sales with the stock. It
does so for each strategy in turn: those named, the eight best known, or all with --all (then
with a fifth of the requests for those that poll). Without --target, it starts its own lab.

The verdicts and the table go to stdout, everything else to stderr. A report file is written
completely or not at all. With - as FILE, the report goes to stdout and the table to stderr.

Without --rate the loop is closed, as in JMeter: each client waits for an answer before it sends
the next request. So a slow service gets fewer requests. With --rate the loop is open: requests
are due at even times, and latencies count from the due time, also if all connections are busy.

Exit status:
  0    all runs completed, also if an unsafe strategy lost updates
  1    a strategy whose card claims safety lost an update, also before Ctrl-C, a request failed,
       a lock was left behind by --rolling-restart, the load took too much of the cores of its own
       lab, a run is inconclusive, such as one that sold less than half of what it could, or a run
       or a report could not be completed
  2    the command line is wrong
  130  stopped by Ctrl-C, with the results until then, marked as partial
       (a second Ctrl-C ends at once)`

func runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run [strategy...]",
		Short: "Run the same load against one strategy after the other",
		Long:  runLong,
		Example: `  oversell run
  oversell run --all
  oversell run none redis --clients 50 --html result.html
  oversell run redis --rate 500/s --loops 100
  oversell run --all --rolling-restart
  oversell run version for-update --sweep clients=1..500 --html curve.html
  oversell run redis --target http://127.0.0.1:8080
  oversell run redis --json - | jq '.[0].lost_updates'`,
		RunE: checked(&flags.files, flags.check, flags.run),
	}
	flags.register(cmd.Flags())
	cmd.ValidArgsFunction = offerStrategies(0)
	for _, s := range scenario.All() { // no strategy may have a scenario's name
		cmd.AddCommand(scenarioCommand(s))
	}
	return cmd
}

func (f *runFlags) register(set *pflag.FlagSet) {
	p := &f.plan
	set.BoolVar(&p.All, "all", false, "run all strategies")
	set.IntVar(&p.Clients, "clients", 100, "number of clients that send requests at the same time")
	set.IntVar(&p.Loops, "loops", 50, "requests per client")
	set.DurationVar(&p.RampUp, "ramp-up", 0, "time in which the clients start, evenly spread")
	set.Func("rate", "an open loop: requests are due at this `RATE`, such as 2000/s or 90/m, also if answers are late; --clients is then the number of connections, and clients x loops the number of requests", func(text string) (err error) {
		p.Rate, err = load.ParseRate(text)
		return err
	})
	set.Func("sweep", "a run of 5 s for each number of clients in `RANGE`, such as clients=1..500; shows where throughput stops rising", func(text string) (err error) {
		p.Sweep, err = parseSweep(text)
		return err
	})
	set.IntVar(&p.Qty, "qty", 1, "pieces per request")
	set.IntVar(&p.Stock, "stock", 5000, "stock before each run")
	set.DurationVar(&p.Hold, "hold", 0, "extra work inside the lock")
	set.DurationVar(&p.Outside, "outside", 0, "extra work outside the lock, before it")
	set.DurationVar(&p.Wait, "wait", 10*time.Second, "maximum wait of a request for the lock")
	set.DurationVar(&p.Pause, "pause", 0, "pause between two tries, for strategies that poll (default: each strategy's own)")
	set.DurationVar(&p.Lease, "lease", 0, "lease of each lock, for strategies that have one (default: each strategy's own)")
	set.StringVar(&p.Target, "target", "", "send the load to the lab at `URL`, and start none")
	addToken(set, &p.Token, "token of the lab at --target (default $LAB_TOKEN, or "+defaultToken+")")
	set.Int64Var(&p.Seed, "seed", 0, "draws the order in which the clients start; 0 draws a seed, which is printed")
	f.lab.register(set)
	set.BoolVar(&f.rolling, "rolling-restart", false, "restart the replicas of its own lab one after the other during each run, with a graceful end; the clients go on until all have restarted")
	set.BoolVar(&f.jmeter, "jmeter", false, "print the columns of JMeter's aggregate report, and its percentiles")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "print only the result, no progress")
	f.files.add(set, "json", "write the results to `FILE`, an array of objects")
	f.files.add(set, "csv", "write every request to `FILE`, in JMeter's JTL columns")
	f.files.add(set, "html", "write a page with charts to `FILE`, which needs no other files")
}

func (f *runFlags) check(cmd *cobra.Command, args []string) error {
	f.plan.Strategies = args
	plan, set := f.plan, cmd.Flags()
	var scenarios []string
	for _, s := range scenario.All() {
		scenarios = append(scenarios, s.ID)
		if slices.Contains(plan.Strategies, s.ID) {
			return fmt.Errorf("%s is a scenario, not a strategy: name it first, and no strategy beside it", s.ID)
		}
	}
	switch {
	case plan.All && len(plan.Strategies) > 0:
		return errors.New("--all runs all strategies: name none beside it")
	case f.rolling && (plan.Target != "" || len(plan.Sweep) > 0 || plan.Rate != 0):
		return errors.New("--rolling-restart needs a lab that this command starts, and a closed loop: it cannot be used with --target, --sweep or --rate")
	case f.rolling && f.lab.replicas < 2:
		return errors.New("--rolling-restart needs --replicas 2 or more: with one replica, no other one can serve meanwhile")
	case plan.Qty < 1:
		return fmt.Errorf("qty %d: must be 1 to 100", plan.Qty)
	}
	if f.rolling && !set.Changed("stock") {
		f.plan.Stock = comparison.MaxStock // the number of requests is not known before the run
	}
	if err := errors.Join(f.checkSweep(set), f.lab.check(plan.Target)); err != nil {
		return err
	}
	f.plan.Delay, f.plan.Fsync, f.plan.Disk = f.lab.delay, f.lab.fsync, f.lab.disk
	if plan.Target == "" {
		plan.Target = "http://127.0.0.1:1" // any valid address: the lab does not run yet
		if _, err := cardsOf(plan.Strategies, scenarios...); err != nil {
			return err
		}
	}
	return plan.Validate()
}

// cardsOf asks this program for strategies, because the lab that the command starts does not run yet. The
// others are names that may have been meant, too.
func cardsOf(ids []string, others ...string) ([]api.Card, error) {
	cards, err := comparison.Choose(catalog.Cards(), ids, false)
	if unknown := (*suggest.Unknown)(nil); errors.As(err, &unknown) {
		unknown.Known = append(unknown.Known, others...)
	}
	return cards, err
}

func (f *runFlags) run(ctx context.Context, out, errOut io.Writer) error {
	closeLab, err := f.openLab(ctx, errOut)
	if err != nil {
		return err
	}
	watcher := f.watcher(out, errOut)
	measurements, failed := comparison.Run(ctx, f.plan, watcher)
	watcher.bar.Clear()
	shown := f.show(measurements, out, errOut)
	err = f.verdict(measurements, failed)
	if f.rolling {
		showRolling(f.files.textOutput(out, errOut), measurements, f.restarts)
	}
	if errors.Is(failed, load.ErrPlan) {
		err = &exit{2, failed}
	}
	return errors.Join(err, shown, closeLab())
}

// drawnSeed returns the seed of an order, which the command prints.
func drawnSeed() int64 { return rand.Int64N(1_000_000) + 1 } //nolint:gosec // no secret

// openLab adds the lab's address and token to the plan. It starts a lab unless the user names one.
func (f *runFlags) openLab(ctx context.Context, errOut io.Writer) (closeLab func() error, err error) {
	p := &f.plan
	p.Machine, p.Versions = measure.ThisMachine(ctx), measure.Versions(version)
	p.Seed = cmp.Or(p.Seed, drawnSeed())
	if p.Target != "" {
		p.Token = cmp.Or(p.Token, defaultToken)
		return func() error { return nil }, nil
	}
	var cores []int
	if p.Machine.LoadCores, cores, err = pin.Apart(); err != nil {
		return nil, err
	}
	lab, err := startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) {
		cfg.Cores = cores
		f.lab.configure(cfg)
		if f.rolling {
			// With such long leases and sessions, a lock that a replica leaves behind outlasts the wait of all
			// requests. So these fail, and the loss is not overlooked.
			cfg.ReplicaArgs = []string{"--drain", drainTime.String(), "--lease", "2m", "--zk-session", "60s"}
		}
	})
	if err != nil {
		return nil, err
	}
	f.started = true
	if f.rolling {
		p.During = func(ctx context.Context) error {
			return lab.RollingRestart(ctx, func(*rig.Server) { f.restarts++ })
		}
	}
	addrs := lab.Addresses()
	p.Target, p.Token = addrs.Target, addrs.Token
	backend.Versions(ctx, p.Versions, addrs.MySQL, addrs.Redis, addrs.Zookeeper, addrs.Etcd)
	return lab.Close, nil
}

func (f *runFlags) show(measurements []comparison.Measurement, out, errOut io.Writer) error {
	if len(measurements) == 0 {
		return nil
	}
	results := make([]measure.Result, len(measurements))
	histories := make([]history.History, len(measurements))
	for i, t := range measurements {
		results[i], histories[i] = t.Result, t.History
	}
	text := f.files.textOutput(out, errOut)
	screen := terminal.Of(text)
	if len(f.plan.Sweep) > 0 {
		curves := measure.Curves(results)
		report.Sweep(text, curves, screen, language())
		report.Conditions(text, results, screen)
		return f.files.write(map[string]func(io.Writer) error{
			"json": func(w io.Writer) error { return report.JSON(w, curves) },
			"html": func(w io.Writer) error { return report.CurveHTML(w, curves) },
		}, out, errOut)
	}
	table := report.Table
	if f.jmeter {
		table = report.JMeterTable
	}
	fmt.Fprintln(text)
	table(text, results, screen)
	fmt.Fprintln(text)
	report.Conditions(text, results, screen)
	return f.files.write(map[string]func(io.Writer) error{
		"json": func(w io.Writer) error { return report.JSON(w, results) },
		"csv":  func(w io.Writer) error { return report.JTL(w, histories) },
		"html": func(w io.Writer) error { return report.HTML(w, results) },
	}, out, errOut)
}

// watcher returns a watcher that prints each verdict during the run, to the stream that gets the table at the end.
func (f *runFlags) watcher(out, errOut io.Writer) *runWatcher {
	text := f.files.textOutput(out, errOut)
	w := &runWatcher{lines: errOut, bar: terminal.NewBar(errOut)}
	if f.quiet {
		w.lines, w.bar = io.Discard, nil
	}
	if len(f.plan.Sweep) > 0 {
		return w
	}
	lesson := report.Lesson{Screen: terminal.Of(text), Lang: language()}
	chosen, _ := comparison.Choose(catalog.Cards(), f.plan.Strategies, f.plan.All) // the lab at --target may have others
	for _, card := range chosen {
		lesson.Names = max(lesson.Names, len(card.ID))
	}
	w.verdict = func(r measure.Result) { lesson.Write(text, r) }
	return w
}

// verdict returns an error with all reasons for exit status 1 (see runLong), or nil. The load counts only in its own
// lab, where it uses the cores of the servers.
func (f *runFlags) verdict(measurements []comparison.Measurement, failed error) error {
	var broken, inconclusive, withErrors, left, loaded []string
	for _, t := range measurements {
		r := t.Result
		if r.Safe && r.Verdict == api.Broken {
			broken = append(broken, r.Strategy)
		}
		if r.Verdict == api.Inconclusive {
			inconclusive = append(inconclusive, r.Strategy)
		}
		if r.Errors > 0 {
			withErrors = append(withErrors, fmt.Sprintf("%s (%d)", r.Strategy, r.Errors))
		}
		if t.LeftBehind != "" {
			left = append(left, fmt.Sprintf("%s (%s)", r.Strategy, t.LeftBehind))
		}
		if f.started && r.Load > r.Machine.MostLoad() {
			loaded = append(loaded, fmt.Sprintf("%s (%.0f %%)", r.Strategy, 100*r.Load))
		}
	}
	for _, found := range []struct {
		what       string
		strategies []string
	}{
		{"these strategies lost updates, although their cards claim that they lose none", broken},
		{"these runs are inconclusive", inconclusive},
		{"requests failed", withErrors},
		{"these strategies could not sell within 1 s after the last restart, so a lock was left behind", left},
		{"the load took too much of the cores (use fewer clients, or another machine for the load), so these rates are partly its own", loaded},
	} {
		if len(found.strategies) > 0 {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", found.what, strings.Join(found.strategies, ", ")))
		}
	}
	return concluded(len(broken) > 0, false, failed)
}
