package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/trial/explore"
	"oversell/view/report"
	"oversell/view/terminal"
)

type exploreFlags struct {
	scope  explore.Scope
	every  bool
	limit  time.Duration
	replay string
	files  files

	program string // of --go
	locks   []explore.Lock
	random  explore.Random
}

// garbage lets the memory grow between two collections: a schedule leaves a lot, and keeps little.
const garbage = 1000

const exploreLong = `Runs every schedule of a few clients that buy one piece each: all orders in which their commands and
statements can reach the servers. The clients run the strategy's own code and scripts. Redis and
ZooKeeper are in memory, and the clock is simulated, so nothing is installed or started, and hundreds
of schedules run in a second. The strategies that need transactions of MySQL, or etcd, cannot be
explored.

Faults add schedules: --pauses (a client is paused before it sends a command, or before it gets the
answer, for up to 1.6 leases), --crashes, --lost-replies (the server executes a command, and its
connection breaks), --failovers (a Redis is replaced by an empty one, as after a fail-over that lost
the last writes) and --expiries (ZooKeeper ends the session of a client). Each
number is that of one schedule.

The result says how many schedules lose an update, and shows the shortest one, step by step. If none
does, it shows the shortest one in which a client waits in vain. Its line "trail" repeats this
schedule with --replay. Schedules that differ only in the order of steps without an effect on each
other run once; --full runs all. An experiment on real servers has the last word: if a plan can say
the order, the result has the command "oversell break --plan ...", and --html there draws it.

With --random, it runs so many schedules in place of all, for more clients and faults than a complete
search can have. Random priorities choose each move, and change at --depth - 1 moves.

With --go, it explores a lock of another Go library: of the program in this folder, which hands it to
cli.Explore. See adapters/examples/schedules.

With --all, it searches with each kind of fault once, also with fencing tokens, and compares with
what the cards claim. It searches all strategies, or those that are named.

Exit status:
  0    done, whether an update was lost or not
  1    something failed, or a card is contradicted (--all), also before Ctrl-C
  2    the strategy does not exist, or the command line is wrong
  130  stopped by Ctrl-C; it prints what it has found until then`

func exploreCommand(foreign ...explore.Lock) *cobra.Command {
	flags := exploreFlags{locks: foreign}
	cmd := &cobra.Command{
		Use:   "explore STRATEGY",
		Short: "Run every schedule of a strategy's clients, and count those that lose an update",
		Long:  exploreLong,
		Example: `  oversell explore redis
  oversell explore redis-lua --pauses 1
  oversell explore redis-setnx --crashes 1
  oversell explore redis-lua --pauses 1 --replay A,B,hold-A,time,B,time,B,time,B,time,B,B,B,B,resume-A,A,A
  oversell explore redlock --clients 3 --pauses 1 --random 10000
  oversell explore --go adapters/examples/schedules redsync --pauses 1
  oversell explore --all --limit 60s`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.every {
				return nil
			}
			return oneStrategy(cmd, args)
		},
		ValidArgsFunction: offerStrategies(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			debug.SetGCPercent(garbage)
			if flags.program != "" {
				return flags.build(cmd, args)
			}
			if flags.every {
				return flags.all(cmd, args)
			}
			flags.scope.Strategy = args[0]
			if err := flags.check(); err != nil {
				return err
			}
			if flags.replay != "" {
				return flags.again(cmd)
			}
			return flags.run(cmd)
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

func (f *exploreFlags) add(set *pflag.FlagSet) {
	set.IntVar(&f.scope.Bounds.Clients, "clients", 2, "number of clients")
	for _, l := range f.scope.Bounds.Limits() {
		set.IntVar(l.N, l.Flag, 0, "number of "+l.Many)
	}
	set.BoolVar(&f.scope.Bounds.Fenced, "fenced", false, "the sales use fencing tokens")
	set.BoolVar(&f.scope.Full, "full", false, "run also the schedules that have the effect of another one")
	set.BoolVar(&f.every, "all", false,
		"run the searches of all strategies, or of those that are named, and compare with their cards")
	set.DurationVar(&f.limit, "limit", 0,
		"end the search after this time, and print what it has found; 0 for no limit")
	set.StringVar(&f.replay, "replay", "", "run only the schedule with this `TRAIL`, and print its steps")
	set.IntVar(&f.random.Schedules, "random", 0, "run this number of schedules with random priorities, not all schedules")
	set.IntVar(&f.random.Depth, "depth", 3, "of --random: 1 to 10, the number of moves that a bug needs in a certain order")
	set.Int64Var(&f.random.Seed, "seed", 1, "of --random: the same seed draws the same schedules")
	set.StringVar(&f.program, "go", "", "explore a lock of the Go program in this `FOLDER`, which calls cli.Explore")
	f.files.add(set, "json", "write the result as JSON to this file; - for stdout")
}

func (f *exploreFlags) check() error {
	if err := f.checkName(); err != nil {
		return &exit{2, err}
	}
	if err := f.scope.Supported(); err != nil {
		return usage("%w", err)
	}
	if err := f.checkRandom(); err != nil {
		return &exit{2, err}
	}
	for _, l := range f.scope.Bounds.Limits() {
		if *l.N < 0 {
			return usage("--%s %d: must not be negative", l.Flag, *l.N)
		}
	}
	switch {
	case f.scope.Bounds.Clients < 1 || f.scope.Bounds.Clients > 5:
		return usage("--clients %d: must be 1 to 5", f.scope.Bounds.Clients)
	case f.replay != "" && f.files.wants("json"):
		return usage("--replay writes no file: it cannot be used with --json")
	case f.limit < 0:
		return usage("--limit %v: must not be negative", f.limit)
	}
	return f.files.check()
}

func (f *exploreFlags) checkRandom() error {
	switch r := f.random; {
	case r.Schedules < 0:
		return fmt.Errorf("--random %d: must not be negative", r.Schedules)
	case r.Depth < 1 || r.Depth > 10:
		return fmt.Errorf("--depth %d: must be 1 to 10", r.Depth)
	case r.Schedules > 0 && f.replay != "":
		return errors.New("--replay runs one schedule: it cannot be used with --random")
	case r.Schedules > 0:
		f.scope.Random = &r
	}
	return nil
}

func (f *exploreFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	began, next := time.Now(), time.Now().Add(2*time.Second)
	r, err := f.search(ctx, f.scope, func(r explore.Result) {
		if time.Now().After(next) {
			next = time.Now().Add(5 * time.Second)
			cmd.PrintErrf("%s schedules, %s of them lose an update\n", terminal.Number(r.Schedules), terminal.Number(r.Oversold))
		}
	})
	if err != nil {
		return err
	}
	out := f.files.textOutput(cmd.OutOrStdout(), cmd.ErrOrStderr())
	printFound(out, r, time.Since(began))
	err = f.files.write(map[string]func(io.Writer) error{
		"json": func(w io.Writer) error { return report.WriteLines(w, r) },
	}, cmd.OutOrStdout(), cmd.ErrOrStderr())
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("stopped"))
	}
	return err
}

// search runs a search within the limit of time.
func (f *exploreFlags) search(ctx context.Context, t explore.Scope, progress func(explore.Result)) (explore.Result, error) {
	limited, cancel := context.WithCancel(ctx)
	if f.limit > 0 {
		limited, cancel = context.WithTimeout(ctx, f.limit)
	}
	defer cancel()
	return explore.Search(limited, t, progress)
}

func printFound(out io.Writer, r explore.Result, took time.Duration) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	of := "all schedules within these bounds"
	switch {
	case r.Random != nil:
		of = "drawn at random"
	case !r.Complete:
		of = "not all schedules: the search was ended"
	}
	line("%s, %d clients: %s schedules (%s), %.0f in a second", r.Strategy, r.Bounds.Clients, terminal.Number(r.Schedules), of,
		float64(r.Schedules+r.Redundant)/took.Seconds())
	for _, c := range r.Counts() {
		line("%8s %s", c.N, c.Of.EN)
	}
	if drawn := r.Random; drawn != nil {
		line("Each schedule shows a bug that needs %d moves in a certain order with a probability of at least 1 in %.0f (%d moves, %d priorities).",
			drawn.Depth, 1/drawn.Guarantee(), drawn.Steps, drawn.Actors)
	}
	title := r.Harm.Shortest()
	if title.EN == "" {
		return
	}
	line("\n%s:", title.EN)
	printSteps(out, r.Shortest)
	if plan, ok := planOf(r.Shortest); ok && r.Lock == nil {
		fenced := map[bool]string{true: " --fenced"}[r.Bounds.Fenced]
		line("The same on real servers: oversell break --plan '%s' %s%s", plan, r.Strategy, fenced)
	}
	line("trail: %s", r.Trail())
}

func printSteps(out io.Writer, steps []explore.Step) {
	for i, s := range steps {
		_, _ = fmt.Fprintf(out, "%3d. %s\n", i+1, s.Text)
	}
}

// again runs one schedule.
func (f *exploreFlags) again(cmd *cobra.Command) error {
	steps, outcome, err := explore.Replay(f.scope, strings.Split(f.replay, ","))
	printSteps(cmd.OutOrStdout(), steps)
	if err != nil {
		return usage("--replay: %w", err)
	}
	verdict := "No update is lost."
	if outcome.Oversold() {
		verdict = "An update is lost."
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s. %s\n", outcome, verdict)
	return nil
}
