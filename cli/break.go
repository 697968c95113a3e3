package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/experiment"
	"oversell/lab/report"
	"oversell/lab/rig"
)

// breakFlags are the flags of `oversell break`.
type breakFlags struct {
	plan  experiment.Plan
	all   bool
	quiet bool
	keep  string
	files [3]string // of --json, --markdown, --html
}

func breakCommand() *cobra.Command {
	var flags breakFlags
	cmd := &cobra.Command{
		Use:   "break [hazard] [strategy...]",
		Short: "Break the locks on purpose, and compare with what their cards claim",
		Long: `Brings up a lab of its own, from the servers of this machine (the Docker image has none).
It brings one hazard about, for one strategy or for all of them at once, and judges what
happened: safe, stalled (nobody got the lock any more) or broken (more was sold than left
the stock row). Behind a verdict stands = where the
strategy's card says the same, and ! where it does not.

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
			case flags.all && len(args) > 0:
				return &exit{2, errors.New("break: --all breaks everything; name nothing beside it")}
			case !flags.all && len(args) == 0:
				return &exit{2, errors.New("break: name a hazard, or say --all; the hazards: " + strings.Join(experiment.Hazards(), ", "))}
			case len(args) > 0:
				flags.plan.Hazards, flags.plan.Strategies = args[:1], args[1:]
			}
			if flags.plan.Seeds < 1 {
				return &exit{2, fmt.Errorf("break: --seeds %d: must be 1 or more", flags.plan.Seeds)}
			}
			return flags.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.all, "all", false, "every hazard on every strategy that it can strike")
	f.BoolVar(&flags.plan.Fenced, "fenced", false, "with fenced writes, on the strategies that have a fence")
	f.Int64Var(&flags.plan.Seed, "seed", 1, "draws which replicas play which part, and in which order")
	f.IntVar(&flags.plan.Seeds, "seeds", 1, "rounds, with one seed more each")
	f.StringVar(&flags.keep, "keep", "", "keep the recording of each run in `FOLDER`; what is there already is not run again")
	f.StringVar(&flags.files[0], "json", "", "write the matrix to `FILE`")
	f.StringVar(&flags.files[1], "markdown", "", "write the matrix to `FILE`, as docs/faults.md has it")
	f.StringVar(&flags.files[2], "html", "", "write the matrix with a picture of each run to `FILE`, complete in itself")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "only the matrix")
	return cmd
}

func (f *breakFlags) run(ctx context.Context, out, errOut io.Writer) error {
	ctx, restore := signal.NotifyContext(ctx, labSignals()...)
	defer restore()
	context.AfterFunc(ctx, restore) // so the second Ctrl-C ends us on the spot

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
	kept, err := experiment.Keep(f.keep)
	if err != nil {
		return fmt.Errorf("break: %w", err)
	}
	cfg := experiment.Config(binary, randomToken())
	cfg.OnExit = tellExit(errOut)
	if f.quiet {
		errOut = io.Discard
	}
	_, _ = fmt.Fprintln(errOut, "bringing up a lab")
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return ended(ctx, fmt.Errorf("break: %w", err))
	}
	versions := map[string]string{}
	serverVersions(ctx, lab.Addresses(), versions)
	err = f.experiment(ctx, lab, kept, errOut)
	if closed := lab.Close(); closed != nil {
		err = errors.Join(err, closed)
	}
	if errors.Is(err, experiment.ErrPlan) || errors.Is(err, experiment.ErrLeftOut) {
		err = &exit{2, err}
	}
	if len(kept.Cells()) > 0 {
		err = errors.Join(f.tell(ctx, out, kept, versions), err)
	}
	return ended(ctx, err)
}

func (f *breakFlags) experiment(ctx context.Context, lab *rig.Rig, kept *experiment.Evidence, told io.Writer) error {
	class, err := experiment.Open(ctx, lab)
	if err != nil {
		return fmt.Errorf("break: %w", err)
	}
	defer class.Close()
	progress := newBreakWatcher(told)
	defer progress.close()
	return experiment.Run(ctx, class, f.plan, kept, progress) //nolint:wrapcheck // says all
}

// tell prints the matrix and writes the files.
func (f *breakFlags) tell(ctx context.Context, out io.Writer, kept *experiment.Evidence, versions map[string]string) error {
	cells, err := kept.Recorded()
	if err != nil {
		return err //nolint:wrapcheck // says all
	}
	m := experiment.Summarise(cells)
	// A hazard may have run on another server than this lab's: some need MariaDB, and kept
	// runs may be of another day.
	if mysql := experiment.MySQLVersions(cells); mysql != "" {
		versions["mysql"] = mysql
	}
	machine := report.ThisMachine(ctx)
	about := experiment.About{
		Date: time.Now().Format(time.DateOnly), Machine: machine.String(), Versions: listed(versions), Command: "oversell break --all",
	}
	writers := [3]func(io.Writer) error{
		func(w io.Writer) error { return m.WriteJSON(w, about) },
		func(w io.Writer) error { return m.WriteMarkdown(w, about) },
		func(w io.Writer) error { return experiment.WritePage(w, m, cells, about) },
	}
	var failed error
	for i, path := range f.files {
		if path != "" {
			failed = errors.Join(failed, report.WriteFile(path, writers[i]))
		}
	}
	return errors.Join(tellMatrix(out, m, cells), failed)
}

// tellMatrix prints what was found, and makes the exit status of it.
func tellMatrix(out io.Writer, m experiment.Matrix, cells []experiment.Cell) error {
	const few = 4 // more than that, nobody reads
	if len(cells) <= few {
		for _, c := range cells {
			c.Story(out)
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

// listed is what the servers are, in one line.
func listed(versions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, name+" "+versions[name])
	}
	return strings.Join(parts, ", ")
}
