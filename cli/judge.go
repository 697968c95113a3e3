package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/backend"
	"oversell/lab/experiment"
	"oversell/lab/report"
	"oversell/lab/rig"
	"oversell/lab/suggest"
	"oversell/locks/adapter"
	"oversell/locks/lockstest"
)

type judgeFlags struct {
	hazards  []string // as typed; empty means all, and the load
	plan     experiment.Plan
	load     bool // after the hazards
	replicas int
	quiet    bool
	store    string
	files    files

	line  string // for the shell
	hello adapter.Hello
	typed string // the command line of judge
}

const judgeLong = `Starts a separate lab, and runs the command beside each replica as an adapter: a program in any
language that offers a lock on its standard input and output (see docs/adapter.md). It checks
the contract first, as "oversell contract" does. Then it injects every hazard that can affect a
lock with these capabilities and servers, and prints a line with the verdict on each. At last, it
sends the requests of 100 clients. If a basic check of the contract fails, it ends there.

One word after -- is a line for the shell. More words are a program and its arguments.

Exit status:
  0    the lock does what it claims
  1    the lock contradicts a claim, or an experiment could not be carried out
  2    the command does not follow the protocol, or the command line is wrong
  130  stopped by Ctrl-C`

func judgeCommand() *cobra.Command {
	flags := judgeFlags{files: files{command: "judge"}}
	cmd := &cobra.Command{
		Use:   "judge [flags] -- COMMAND...",
		Short: "Put a lock of your own on trial: its contract, and every hazard that applies",
		Long:  judgeLong,
		Example: `  oversell judge -- python3 adapters/examples/lock.py
  oversell judge --hazard pause,crash --seeds 5 --html verdict.html -- java -jar my-lock.jar`,
		Args: afterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := flags.check(ctx, args); err != nil {
				return ended(ctx, usage("judge: %w", err))
			}
			flags.typed = judgeLine(cmd, flags.plan.Adapter)
			if err := flags.files.check(); err != nil {
				return err
			}
			return ended(ctx, flags.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.hazards, "hazard", nil, "only these `HAZARDS`, separated by commas; load is one of them (default: all that apply)")
	f.Int64Var(&flags.plan.Seed, "seed", 1, "draws the replicas")
	f.IntVar(&flags.plan.Seeds, "seeds", 1, "number of rounds; each has the next seed")
	f.IntVar(&flags.replicas, "replicas", 3, "number of replicas, 3 to 50")
	f.StringVar(&flags.store, "keep", "", "store results and recordings in `FOLDER`; runs that it already has are skipped")
	flags.files.add(f, "json", "write the verdicts to `FILE`")
	flags.files.add(f, "markdown", "write the verdicts to `FILE`")
	flags.files.add(f, "html", "write the verdicts with timelines of the runs to `FILE`, a page that needs no other files")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print only the verdicts")
	return cmd
}

// afterDash rejects a command without -- before it, because its flags would be read as ours.
func afterDash(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0:
		return usage("%s: the command of the adapter is missing. Usage: %s", cmd.Name(), cmd.UseLine())
	case dash != 0:
		return usage("%s: unexpected argument %q: write -- before the command of the adapter. Usage: %s", cmd.Name(), args[0], cmd.UseLine())
	}
	return nil
}

func judgeLine(cmd *cobra.Command, command string) string {
	return commandLine(cmd, nil) + " -- " + command
}

func (f *judgeFlags) check(ctx context.Context, args []string) (err error) {
	if f.plan.Seeds < 1 {
		return fmt.Errorf("--seeds %d: must be 1 or more", f.plan.Seeds)
	}
	if f.replicas < 3 || f.replicas > 50 { // holder, contender and a third request
		return fmt.Errorf("--replicas %d: must be 3 to 50", f.replicas)
	}
	f.plan.Hazards, f.load = withoutLoad(f.hazards)
	if err := knownHazards(f.plan.Hazards); err != nil {
		return err
	}
	if f.line, f.hello, err = greet(ctx, args); err != nil {
		return err
	}
	if err := knownHazards(claimed(f.hello)); err != nil {
		return fmt.Errorf("the hello of the adapter: %w", err)
	}
	f.plan.Adapter, f.plan.Strategies = quotedWords(args), []string{adapter.ID}
	card := experiment.Card{Card: f.hello.Card()}
	for _, e := range experiment.All() {
		if slices.Contains(f.plan.Hazards, e.Hazard) && !e.AppliesTo(card) {
			return fmt.Errorf("the hazard %s does not apply to a lock with these capabilities, backends and claims; these do: %s",
				e.Hazard, strings.Join(experiment.HazardsOf(card), ", "))
		}
	}
	if len(f.hazards) == 0 {
		f.plan.Hazards = experiment.HazardsOf(card)
	}
	return nil
}

// claimed returns the hazards about which the hello claims something.
func claimed(h adapter.Hello) (hazards []string) {
	for _, p := range h.Protects {
		hazards = append(hazards, string(p))
	}
	for _, b := range h.Breaks {
		hazards = append(hazards, string(b.Hazard))
	}
	return hazards
}

// knownHazards rejects a hazard that no experiment has.
func knownHazards(hazards []string) error {
	for _, hazard := range hazards {
		if known := experiment.Hazards(); !slices.Contains(known, hazard) {
			return &suggest.Unknown{Kind: "hazard", Name: hazard, Known: known}
		}
	}
	return nil
}

func (f *judgeFlags) run(ctx context.Context, out, errOut io.Writer) error {
	store, err := experiment.OpenStore(f.store)
	if err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	for _, r := range store.Results() {
		if r.Adapter != f.plan.Adapter {
			return usage("judge: --keep %s: the folder has results of another command: %s", f.store, r.Command())
		}
	}
	lab, err := startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) {
		onExit := cfg.OnExit
		*cfg = experiment.Config(cfg.Binary, cfg.Token)
		cfg.Postgres = slices.Contains(f.hello.Backends, "postgres")
		cfg.OnExit, cfg.Replicas, cfg.ReplicaArgs = onExit, f.replicas, append(cfg.ReplicaArgs, "--adapter", f.line)
	})
	if err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	if f.quiet {
		errOut = io.Discard
	}
	text := f.files.textOutput(out, errOut)
	addrs, versions := lab.Addresses(), map[string]string{}
	backend.Versions(ctx, versions, addrs.MySQL, addrs.Redis, addrs.Zookeeper, addrs.Etcd)
	if addrs.Postgres != "" {
		if versions["postgresql"], err = backend.PostgresVersion(ctx, addrs.Postgres); err != nil {
			return errors.Join(fmt.Errorf("judge: %w", err), lab.Close())
		}
	}
	v := &judgement{flags: f, versions: versions}
	v.introduce(text)
	err = v.hold(ctx, lab, store, text, errOut)
	if err = errors.Join(err, lab.Close()); err != nil {
		err = fmt.Errorf("judge: %w", err)
		if errors.Is(err, experiment.ErrPlan) {
			err = &exit{2, err}
		}
		return err
	}
	return v.conclude(ctx, store, text, out, errOut)
}

// judgement is the trial of one lock.
type judgement struct {
	flags    *judgeFlags
	versions map[string]string
	contract []lockstest.Outcome
	load     []report.Result // of the lock, and of the yardstick
}

// hold runs the contract, and then the hazards and the load if the contract's basic checks hold.
func (v *judgement) hold(ctx context.Context, lab *rig.Rig, store *experiment.ResultStore, text, progress io.Writer) (err error) {
	_, _ = fmt.Fprintln(text, "\nThe contract:")
	v.contract, err = contract(ctx, lab.Addresses(), v.flags.line, v.flags.hello, anyCheck, contractPrinter(text))
	if _, basic := failedChecks(v.contract); err != nil || basic {
		return err
	}
	if len(v.flags.plan.Hazards) > 0 {
		err = v.inject(ctx, lab, store, text, progress)
	}
	if err == nil && v.flags.load {
		err = v.underLoad(ctx, lab, text)
	}
	return err
}

// inject runs the experiments that the plan selects.
func (v *judgement) inject(ctx context.Context, lab *rig.Rig, store *experiment.ResultStore, text, progress io.Writer) error {
	bed, err := experiment.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	_, _ = fmt.Fprintln(text, "\nThe hazards:")
	w := &judgeWatcher{breakWatcher: newBreakWatcher(progress), text: text}
	for _, hazard := range v.flags.plan.Hazards {
		w.width = max(w.width, len(hazard)+len(" --fenced"))
	}
	defer w.close()
	for _, r := range store.Results() { // of an earlier trial, with --keep
		printVerdict(text, r, w.width)
	}
	return experiment.Perform(ctx, bed, v.flags.plan, store, w)
}

// judgeWatcher prints the verdict of each run when the run has ended.
type judgeWatcher struct {
	*breakWatcher
	text  io.Writer
	width int // of the hazards' names
}

func (w *judgeWatcher) Begin(e experiment.Experiment, subjects, nth, of int) {
	if w.bar != nil {
		w.breakWatcher.Begin(e, subjects, nth, of)
	}
}

func (w *judgeWatcher) End(_ experiment.Experiment, results []experiment.Result, _ time.Duration) {
	w.close()
	for _, r := range results {
		printVerdict(w.text, r, w.width)
	}
}
