package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/experiment"
	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/trial"
)

type judgeFlags struct {
	judge    trial.Judge
	hazards  []string // as typed; empty means all, and the load
	replicas int
	quiet    bool
	store    string
	files    files
	chaos    chaosFlags
	drawn    bool // random plans, in place of the contract, the hazards and the load
}

const judgeLong = `Starts a separate lab, and runs the command beside each replica as an adapter: a program in any
language that offers a lock on its standard input and output (see docs/adapter.md). It checks
the contract first, as "oversell contract" does. Then it injects every hazard that can affect a
lock with these capabilities and servers, and prints a line with the verdict on each. At last, it
sends the requests of 100 clients. If a basic check of the contract fails, it ends there.

With --chaos, it draws random plans instead, as "oversell chaos" does, which also says what --for
limits.

One word after -- is a line for the shell. More words are a program and its arguments.

Exit status:
  0    the lock does what it claims
  1    the lock contradicts a claim, also before Ctrl-C, or an experiment could not be carried out
  2    inconclusive: the machine was too busy for a check or a hazard, or a hazard was left out
       because its servers are not installed; with --chaos, as in "oversell chaos --help";
       or the command does not follow the protocol, or the command line is wrong
  130  stopped by Ctrl-C, with the verdicts until then`

func judgeCommand() *cobra.Command {
	var flags judgeFlags
	cmd := &cobra.Command{
		Use:   "judge [flags] -- COMMAND...",
		Short: "Put a lock of your own on trial: its contract, and every hazard that applies",
		Long:  judgeLong,
		Example: `  oversell judge -- python3 adapters/examples/lock.py
  oversell judge --hazard pause,crash --seeds 5 --html verdict.html -- java -jar my-lock.jar
  oversell judge --chaos --for 5m -- python3 adapters/examples/lock.py`,
		Args: afterDash,
		RunE: checked(&flags.files, flags.check, flags.run),
	}
	f := cmd.Flags()
	f.BoolVar(&flags.drawn, "chaos", false, "draw random plans of moves and faults instead")
	flags.chaos.addCampaign(f)
	f.StringSliceVar(&flags.hazards, "hazard", nil, "only these `HAZARDS`, separated by commas; load is one of them (default: all that apply)")
	f.Int64Var(&flags.judge.Seed, "seed", 1, "draws the replicas, or the first plan")
	f.IntVar(&flags.judge.Seeds, "seeds", 1, "number of rounds; each has the next seed")
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
		return usage("the command of the adapter is missing. Usage: %s", cmd.UseLine())
	case dash != 0:
		return usage("unexpected argument %q: write -- before the command of the adapter. Usage: %s", args[0], cmd.UseLine())
	}
	return nil
}

func (f *judgeFlags) check(cmd *cobra.Command, args []string) (err error) {
	for name, drawn := range map[string]bool{"for": true, "plan": true, "labs": true, "hazard": false, "seeds": false, "keep": false} {
		switch {
		case !cmd.Flags().Changed(name) || drawn == f.drawn:
		case drawn:
			return fmt.Errorf("--%s: add --chaos, which draws plans", name)
		default:
			return fmt.Errorf("--%s: leave it out with --chaos, which draws its own plans", name)
		}
	}
	if f.judge.Seeds < 1 {
		return fmt.Errorf("--seeds %d: must be 1 or more", f.judge.Seeds)
	}
	if f.replicas < 3 || f.replicas > 50 { // holder, contender and a third request
		return fmt.Errorf("--replicas %d: must be 3 to 50", f.replicas)
	}
	if err := trial.KnownHazards(hazardsOf(f.hazards)); err != nil {
		return err
	}
	if err := f.chaos.checkCampaign(); err != nil {
		return err
	}
	if f.judge.Lock, err = trial.Greet(cmd.Context(), args...); err != nil {
		return err
	}
	f.judge.Command = commandLine(cmd, nil) + " -- " + f.judge.Lock.Command
	return f.judge.Select(hazardsOf(f.hazards))
}

// campaign returns the random plans for the lock, without its fence and with it.
func (f *judgeFlags) campaign() *chaosFlags {
	c, card := &f.chaos, f.judge.Lock.Hello.Card()
	c.campaign.Seed, c.campaign.Adapter = f.judge.Seed, f.judge.Lock.Command
	c.files, c.command, c.quiet = f.files, f.judge.Command, f.quiet
	c.campaign.Subjects = []player.Subject{{Card: card}}
	if card.Fenced {
		c.campaign.Subjects = append(c.campaign.Subjects, player.Subject{Card: card, Fenced: true})
	}
	return c
}

func (f *judgeFlags) run(ctx context.Context, out, errOut io.Writer) error {
	store, err := f.judge.OpenStore(f.store)
	if err != nil {
		return usage("--keep %s: %w", f.store, err)
	}
	start := func(ctx context.Context, errOut io.Writer) (*rig.Rig, error) {
		return startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) {
			f.judge.Lock.HazardLab(cfg)
			cfg.Replicas = f.replicas
		})
	}
	text, h := f.files.textOutput(out, errOut), f.judge.Lock.Hello
	_, _ = fmt.Fprintf(text, "%s %s, %s, on %s\n", h.Library, h.Version, h.Language, strings.Join(h.Backends, ", "))
	if f.drawn {
		return f.campaign().run(ctx, start, out, errOut)
	}
	lab, err := start(ctx, errOut)
	if err != nil {
		return err
	}
	if f.quiet {
		errOut = io.Discard
	}
	w := newTrialWatcher(text, errOut)
	v, err := f.judge.Try(ctx, lab, store, w)
	w.bar.Clear()
	ended := lab.Close()
	if err = errors.Join(err, ctx.Err()); errors.Is(err, load.ErrPlan) || errors.Is(err, experiment.ErrLeftOut) {
		err = &exit{2, err}
	}
	if len(v.Contract) == 0 {
		return errors.Join(err, ended)
	}
	w.Conclude(v)
	if ended != nil { // the verdicts are there, and nothing of the lab is left
		_, _ = fmt.Fprintf(text, "The lab did not end by itself: %v\n", ended)
	}
	failed := f.files.write(map[string]func(io.Writer) error{
		"json": v.WriteJSON, "markdown": v.WriteMarkdown, "html": func(w io.Writer) error { return v.WritePage(w, language()) },
	}, out, errOut)
	return concluded(v.Contradicts(), !v.Agrees(), errors.Join(err, failed))
}

// trialWatcher prints each verdict, and below them a bar for the experiment that runs.
type trialWatcher struct {
	trial.Printer
	*breakWatcher
}

func newTrialWatcher(text, progress io.Writer) *trialWatcher {
	return &trialWatcher{trial.Printer{Out: text, Lang: language()}, newBreakWatcher(progress)}
}

func (w *trialWatcher) Begin(e experiment.Experiment, subjects, nth, of int) {
	if w.bar != nil {
		w.breakWatcher.Begin(e, subjects, nth, of)
	}
}

func (w *trialWatcher) End(_ experiment.Experiment, results []experiment.Result, _ time.Duration) {
	w.bar.Clear()
	w.Results(results)
}
