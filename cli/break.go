package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/chaos"
	"oversell/lab/experiment"
	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/locks/catalog"
	"oversell/view/matrix"
	"oversell/view/terminal"
)

type breakFlags struct {
	plan     experiment.Selection
	all      bool
	quiet    bool
	store    string
	moves    string // a plan that the user has made up
	showPlan bool
	files    files
	command  string // as it was typed
}

func breakCommand() *cobra.Command {
	var flags breakFlags
	cmd := &cobra.Command{
		Use:   "break [hazard[,hazard...] | --all | --plan PLAN] [strategy...]",
		Short: "Break the locks on purpose, and compare the verdicts with the claims of their cards",
		Long: `Starts a separate lab with the servers of this machine (the Docker image has none).
It injects each hazard, for one strategy or for all of them at once, and gives a verdict on
each: ✓ safe, ✗ broken (an invariant does not hold, for example a lost update: more was sold
than taken from the stock), ✗ stalled (no request acquires the lock any more), ▲ correct at a
cost, or ? inconclusive. After a verdict, = marks that the strategy's card claims the same, and
≠ that it claims otherwise.

The hazards: ` + api.JoinHazards(experiment.Hazards(), ", ") + `.

A hazard is a plan: what happens in which order. --show prints it, and --plan injects one of your own:
  oversell break pause --show
  oversell break --plan 'A sells at writing, A freezes, a lease passes, B sells, A thaws, A resumes' redis zk
A, B and C are clients, each on a replica of its own, and D is one in the process of A. A request stops
at a step, such as read or writing, until its client resumes. At the end of a plan all faults are
healed, all requests go on, and one more client must buy.

Exit status:
  0    every verdict agrees with its card
  1    a verdict contradicts a card, also before Ctrl-C, or an experiment could not be carried out
  2    inconclusive: a run about which a card has a claim, or a hazard was left out because its
       servers are not installed; or the command line is wrong
  130  stopped by Ctrl-C, with the verdicts until then`,
		Example: `  oversell break pause redis
  oversell break pause redis --fenced
  oversell break crash
  oversell break race,crash,pause atomic for-update
  oversell break --all --seeds 20 --keep results/break --html matrix.html`,
		ValidArgsFunction: offerHazards(&flags.all),
		RunE:              checked(&flags.files, flags.check, flags.run),
	}
	f := cmd.Flags()
	f.BoolVar(&flags.all, "all", false, "every hazard, for the strategies named or for all")
	f.StringVar(&flags.moves, "plan", "", "in place of a hazard, a `PLAN` of your own")
	f.BoolVar(&flags.showPlan, "show", false, "print the plans of the hazards, and inject nothing")
	f.BoolVar(&flags.plan.Fenced, "fenced", false, "with fenced writes, on the strategies that have a fencing token")
	f.Int64Var(&flags.plan.Seed, "seed", 1, "draws the replicas and the order of the strategies")
	f.IntVar(&flags.plan.Seeds, "seeds", 1, "number of rounds; each has the next seed")
	f.StringVar(&flags.store, "keep", "", "store results and recordings in `FOLDER`; runs that it already has are skipped")
	flags.files.add(f, "json", "write the matrix to `FILE`")
	flags.files.add(f, "markdown", "write the matrix to `FILE`, as in docs/faults.md")
	flags.files.add(f, "html", "write the matrix with timelines of the runs to `FILE`, a page that needs no other files")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print only the matrix")
	return cmd
}

func (f *breakFlags) check(cmd *cobra.Command, args []string) error {
	f.command = commandLine(cmd, args)
	switch {
	case f.all && cmd.Flags().Changed("plan"):
		return errors.New("--all is every hazard: leave out --plan")
	case cmd.Flags().Changed("plan"):
		f.plan.Strategies = args
		if err := f.parse(args); err != nil {
			return err
		}
	case f.all:
		f.plan.Strategies = args
	case len(args) == 0:
		return fmt.Errorf("name a hazard, or use --all; the hazards: %s", api.JoinHazards(experiment.Hazards(), ", "))
	default:
		f.plan.Hazards, f.plan.Strategies = hazardsOf(strings.Split(args[0], ",")), args[1:]
	}
	if f.plan.Seeds < 1 {
		return fmt.Errorf("--seeds %d: must be 1 or more", f.plan.Seeds)
	}
	if _, err := cardsOf(f.plan.Strategies); err != nil {
		return err
	}
	return f.plan.Validate(catalog.Cards())
}

// parse reads the plan of the user. It needs to know the strategies: an example is better than a guess.
func (f *breakFlags) parse(strategies []string) (err error) {
	if len(strategies) == 0 {
		return errors.New("name one or more strategies for the plan, such as redis zk. List them: oversell strategies")
	}
	f.plan.Moves, err = chaos.Parse(f.moves)
	return err
}

func hazardsOf(names []string) (all []api.Hazard) {
	for _, name := range names {
		all = append(all, api.Hazard(name))
	}
	return all
}

// printPlans prints the plans of the chosen hazards.
func (f *breakFlags) printPlans(out io.Writer) error {
	hazards := f.plan.Hazards
	if len(hazards) == 0 {
		hazards = experiment.Hazards()
	}
	screen := terminal.Of(out)
	for _, hazard := range hazards {
		e, _ := experiment.Of(hazard)
		_, _ = fmt.Fprintln(out, screen.Wrap(string(hazard)+": "+e.Title.In(language()), 0))
		for _, line := range matrix.PlanLines(e, language()) {
			_, _ = fmt.Fprintln(out, screen.Wrap("  "+line, 4))
		}
	}
	return nil
}

// breakable changes the settings of a lab to those of experiments.
func breakable(cfg *rig.Config) { *cfg = player.Config(cfg.Binary, cfg.Token) }

func (f *breakFlags) run(ctx context.Context, out, errOut io.Writer) error {
	if f.showPlan {
		return f.printPlans(out)
	}
	store, err := experiment.OpenStore(f.store)
	if err != nil {
		return err
	}
	lab, err := startLab(ctx, f.quiet, errOut, breakable)
	if err != nil {
		return err
	}
	if f.quiet {
		errOut = io.Discard
	}
	addrs, versions := lab.Addresses(), map[string]string{}
	backend.Versions(ctx, versions, addrs.MySQL, addrs.Redis, addrs.Zookeeper, addrs.Etcd)
	err = errors.Join(f.experiment(ctx, lab, store, errOut), lab.Close())
	if errors.Is(err, load.ErrPlan) || errors.Is(err, experiment.ErrLeftOut) {
		err = &exit{2, err}
	}
	if len(store.Results()) > 0 {
		err = f.show(context.WithoutCancel(ctx), out, errOut, store, versions, err)
	}
	return err
}

func (f *breakFlags) experiment(ctx context.Context, lab *rig.Rig, store *experiment.ResultStore, progress io.Writer) error {
	bed, err := player.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	watcher := newBreakWatcher(progress)
	defer watcher.bar.Clear()
	return experiment.Perform(ctx, bed, f.plan, store, watcher)
}

// show prints the matrix and writes the flags' files. The error, err or its own, has the command's exit status.
func (f *breakFlags) show(ctx context.Context, out, errOut io.Writer, store *experiment.ResultStore, versions map[string]string, err error) error {
	m, writers := matrixFiles(ctx, store.Results(), versions, f.command)
	text, failed := f.files.textOutput(out, errOut), f.files.write(writers, out, errOut)
	contradicted, inconclusive := showMatrix(text, m, store.Results())
	return concluded(contradicted, inconclusive, errors.Join(failed, err))
}

// matrixFiles returns the matrix of results, and what writes its files. versions are those of the lab's servers.
func matrixFiles(ctx context.Context, results []experiment.Result, versions map[string]string, command string) (matrix.Matrix, map[string]func(io.Writer) error) {
	// Results may come from MariaDB or another MySQL than the lab's, so name the results' versions.
	if mysql := matrix.MySQLVersions(results); mysql != "" {
		versions["mysql"] = mysql
	}
	m, about := matrix.Summarise(results), matrix.Now(ctx, versions, command)
	return m, map[string]func(io.Writer) error{
		"json":     func(w io.Writer) error { return m.WriteJSON(w, about) },
		"markdown": func(w io.Writer) error { return m.WriteMarkdown(w, about) },
		"html":     func(w io.Writer) error { return matrix.WritePage(w, m, results, about, language()) },
	}
}

func showMatrix(out io.Writer, m matrix.Matrix, results []experiment.Result) (contradicted, inconclusive bool) {
	screen := terminal.Of(out)
	const maxLogs = 4 // more event logs would be too long to read
	if len(results) <= maxLogs {
		for _, r := range results {
			matrix.WriteEventLog(out, r, screen, language())
		}
	}
	m.Print(out, screen, language())
	wrong, open := m.Contradictions(language()), m.Inconclusive(language())
	if len(m.Hazards) > 1 { // the lines for a single hazard have said it
		for _, line := range append(wrong, open...) {
			_, _ = fmt.Fprintln(out, screen.Wrap(line, 2))
		}
	}
	return len(wrong) > 0, len(open) > 0
}
