package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/report"
	"oversell/lab/rig"
)

// breakFlags are the flags of `oversell break`.
type breakFlags struct {
	plan  experiment.Plan
	all   bool
	quiet bool
	store string
	files [3]string // of --json, --markdown, --html
}

func breakCommand() *cobra.Command {
	var flags breakFlags
	cmd := &cobra.Command{
		Use:   "break [hazard | --all] [strategy...]",
		Short: "Break the locks on purpose, and compare the verdicts with the claims of their cards",
		Long: `Starts a separate lab with the servers of this machine (the Docker image has none).
It injects one hazard, for one strategy or for all of them at once, and gives a verdict on
each: safe, stalled (no request acquires the lock any more) or broken (an invariant does not
hold, for example a lost update: more was sold than taken from the stock). After a verdict, =
marks that the strategy's card claims the same, ! that it claims otherwise.

The hazards: ` + strings.Join(experiment.Hazards(), ", ") + `.

Exit status:
  0    every verdict agrees with its card
  1    a verdict contradicts a card, or an experiment could not be carried out
  2    a claim was neither shown nor refuted, a hazard was left out because its servers
       are not installed, or the command line cannot be run
  130  stopped by Ctrl-C`,
		Example: `  oversell break pause redis
  oversell break pause redis --fenced
  oversell break crash
  oversell break --all --seeds 20 --keep results/break --html matrix.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case flags.all:
				flags.plan.Strategies = args
			case len(args) == 0:
				return &exit{2, errors.New("break: name a hazard, or use --all; the hazards: " + strings.Join(experiment.Hazards(), ", "))}
			default:
				flags.plan.Hazards, flags.plan.Strategies = args[:1], args[1:]
			}
			if flags.plan.Seeds < 1 {
				return &exit{2, fmt.Errorf("break: --seeds %d: must be 1 or more", flags.plan.Seeds)}
			}
			return flags.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.all, "all", false, "every hazard, for the strategies named or for all")
	f.BoolVar(&flags.plan.Fenced, "fenced", false, "with fenced writes, on the strategies that have a fencing token")
	f.Int64Var(&flags.plan.Seed, "seed", 1, "random draw of the replicas and the order of the strategies")
	f.IntVar(&flags.plan.Seeds, "seeds", 1, "number of rounds; each has the next seed")
	f.StringVar(&flags.store, "keep", "", "store results and recordings in `FOLDER`; runs that it already has are skipped")
	f.StringVar(&flags.files[0], "json", "", "write the matrix to `FILE`")
	f.StringVar(&flags.files[1], "markdown", "", "write the matrix to `FILE`, as docs/faults.md has it")
	f.StringVar(&flags.files[2], "html", "", "write the matrix with timelines of the runs to `FILE`, a page without other files")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "only the matrix")
	return cmd
}

func (f *breakFlags) run(ctx context.Context, out, errOut io.Writer) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("break: %w", err)
	}
	if err := f.plan.Validate(); err != nil {
		return &exit{2, fmt.Errorf("break: %w", err)}
	}
	if err := known(f.plan.Strategies); err != nil {
		return &exit{2, fmt.Errorf("break: %w", err)}
	}
	for _, path := range f.files {
		if path != "" {
			if err := report.CheckWritable(path); err != nil {
				return fmt.Errorf("break: %w", err)
			}
		}
	}
	store, err := experiment.OpenStore(f.store)
	if err != nil {
		return fmt.Errorf("break: %w", err)
	}
	cfg := experiment.Config(binary, randomToken())
	cfg.OnExit = tellExit(errOut)
	if f.quiet {
		errOut = io.Discard
	}
	_, _ = fmt.Fprintln(errOut, "starting a lab")
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return ended(ctx, fmt.Errorf("break: %w", err))
	}
	versions := map[string]string{}
	serverVersions(ctx, lab.Addresses(), versions)
	err = f.experiment(ctx, lab, store, errOut)
	if closed := lab.Close(); closed != nil {
		err = errors.Join(err, closed)
	}
	if errors.Is(err, experiment.ErrPlan) || errors.Is(err, experiment.ErrLeftOut) {
		err = &exit{2, err}
	}
	if len(store.Results()) > 0 {
		err = errors.Join(f.tell(ctx, out, store, versions), err)
	}
	return ended(ctx, err)
}

func (f *breakFlags) experiment(ctx context.Context, lab *rig.Rig, store *experiment.ResultStore, told io.Writer) error {
	bed, err := experiment.Open(ctx, lab)
	if err != nil {
		return fmt.Errorf("break: %w", err)
	}
	defer bed.Close()
	progress := newBreakWatcher(told)
	defer progress.close()
	return experiment.Run(ctx, bed, f.plan, store, progress)
}

// tell prints the matrix and writes the files.
func (f *breakFlags) tell(ctx context.Context, out io.Writer, store *experiment.ResultStore, versions map[string]string) error {
	results, err := store.WithRecordings()
	if err != nil {
		return err
	}
	m := matrix.Summarise(results)
	// A hazard may have run on another server than this lab's: some need MariaDB, and stored
	// runs may be of another day.
	if mysql := matrix.MySQLVersions(results); mysql != "" {
		versions["mysql"] = mysql
	}
	machine := report.ThisMachine(ctx)
	about := matrix.About{
		Date: time.Now().Format(time.DateOnly), Machine: machine.String(), Versions: listed(versions), Command: "oversell break --all",
	}
	writers := [3]func(io.Writer) error{
		func(w io.Writer) error { return m.WriteJSON(w, about) },
		func(w io.Writer) error { return m.WriteMarkdown(w, about) },
		func(w io.Writer) error { return matrix.WritePage(w, m, results, about) },
	}
	var failed error
	for i, path := range f.files {
		if path != "" {
			failed = errors.Join(failed, report.WriteFile(path, writers[i]))
		}
	}
	return errors.Join(tellMatrix(out, m, results), failed)
}

// tellMatrix prints the matrix, and returns the exit status.
func tellMatrix(out io.Writer, m matrix.Matrix, results []experiment.Result) error {
	const few = 4 // more would be too long to read
	if len(results) <= few {
		for _, c := range results {
			matrix.WriteEventLog(out, c)
		}
	}
	m.Print(out)
	wrong, unknown := m.Contradictions(), m.Unknowns()
	for _, line := range append(wrong, unknown...) {
		_, _ = fmt.Fprintln(out, line)
	}
	switch {
	case len(wrong) > 0:
		return &exit{1, nil}
	case len(unknown) > 0:
		return &exit{2, nil}
	}
	return nil
}

// listed returns the versions of the servers in one line.
func listed(versions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, name+" "+versions[name])
	}
	return strings.Join(parts, ", ")
}
