package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/grade"
	"oversell/lab/matrix"
	"oversell/lab/rig"
	"oversell/locks/adapter"
	"oversell/locks/lockstest"
)

// gradeLimit is the time from the start of the command after which no check and no hazard runs. A
// grade takes less than 90 s. A busy machine needs more, and must not take points from a right lock.
const gradeLimit = 150 * time.Second

const gradeLong = `Starts a separate lab, and runs the command as an adapter: a student's program that offers a lock
on its standard input and output (see docs/adapter.md). It checks what the exercise asks for: checks
of the contract, and hazards. It prints the score, the first counterexample, and a hint with the
strategy whose lesson it is. Without arguments, it lists the exercises; docs/exercises has their texts.

Exit status:
  0    all requirements are met
  1    a requirement is not met
  2    the program does not follow the protocol, lacks a capability, or the command line is wrong
  130  stopped by Ctrl-C`

type gradeFlags struct {
	exercise grade.Exercise
	line     string // for the shell
	typed    string // the student's command
	hello    adapter.Hello
	quiet    bool
	files    files
	command  string
}

func gradeCommand() *cobra.Command {
	flags := gradeFlags{files: files{command: "grade"}}
	cmd := &cobra.Command{
		Use:   "grade [flags] [EXERCISE -- COMMAND...]",
		Short: "Grade a student's lock: score, counterexample and hint",
		Long:  gradeLong,
		Example: `  oversell grade
  oversell grade 3 -- python3 my-lock.py
  oversell grade renewal --html grade.html -- go run ./my-lock`,
		Args: gradeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listGraded(cmd.OutOrStdout())
			}
			ctx := cmd.Context()
			adoptStrays()
			if err := flags.check(ctx, args); err != nil {
				return ended(ctx, errors.Join(usage("grade: %w", err), killStrays()))
			}
			flags.command = commandLine(cmd, args[:1]) + " -- " + flags.typed
			if err := flags.files.check(); err != nil {
				return err
			}
			return ended(ctx, flags.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	flags.files.add(f, "json", "write the grade to `FILE`")
	flags.files.add(f, "html", "write the runs with their timelines to `FILE`, a page that needs no other files")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print only the result, no progress")
	return cmd
}

func gradeArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0 && dash < 0:
		return nil
	case dash < 0 || dash == 1 && len(args) == 1:
		return usage("grade: the student's command is missing: write it after --. Usage: %s", cmd.UseLine())
	case dash != 1:
		return usage("grade: name one exercise before --. List them: %s", cmd.CommandPath())
	}
	return nil
}

func listGraded(out io.Writer) error {
	lang := language()
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, e := range grade.Exercises() {
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\tdocs/exercises/%s.md\n", e.Number, e.Name, e.Title.In(lang), e.Page())
	}
	return t.Flush()
}

func (f *gradeFlags) check(ctx context.Context, args []string) (err error) {
	if f.exercise, err = grade.Find(args[0]); err != nil {
		return err
	}
	f.typed = quotedWords(args[1:])
	if f.line, f.hello, err = greet(ctx, args[1:]); err != nil {
		return err
	}
	return f.suits()
}

// suits returns an error if a lock with this hello cannot be graded in the exercise.
func (f *gradeFlags) suits() error {
	text, err := json.Marshal(f.hello.Capabilities)
	claimed := map[string]bool{}
	if err == nil {
		err = json.Unmarshal(text, &claimed)
	}
	if err != nil {
		return err
	}
	e := f.exercise
	for _, capability := range e.Needs {
		if !claimed[capability] {
			return fmt.Errorf(`exercise %d needs the capability %s: write "%s":true into the capabilities of the program's hello`, e.Number, capability, capability)
		}
	}
	if !slices.ContainsFunc(f.hello.Backends, func(b string) bool { return slices.Contains(e.Servers, b) }) {
		return fmt.Errorf("exercise %d needs a lock on one of these backends: %s. The hello of the program names %s",
			e.Number, strings.Join(e.Servers, ", "), strings.Join(append(f.hello.Backends, "no other"), ", "))
	}
	if len(f.hello.Breaks) > 0 {
		return errors.New("the hello of the program has breaks: a lock that is graded must not name hazards that break it")
	}
	return nil
}

func (f *gradeFlags) run(ctx context.Context, out, errOut io.Writer) error {
	g := &grading{gradeFlags: f, began: time.Now(), text: f.files.textOutput(out, errOut), progress: errOut, found: map[string]grade.Finding{}}
	if f.quiet {
		g.progress = io.Discard
	}
	lab, err := startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) {
		onExit := cfg.OnExit
		*cfg = experiment.Config(cfg.Binary, cfg.Token)
		cfg.Postgres = slices.Contains(f.hello.Backends, "postgres")
		cfg.OnExit, cfg.Nginx, cfg.Clocks, cfg.ReplicaArgs = onExit, false, false, append(cfg.ReplicaArgs, "--adapter", f.line)
		if !slices.ContainsFunc(f.exercise.New, func(r grade.Requirement) bool { return r.Hazard == "minority-loss" }) {
			cfg.ZookeeperServers, cfg.EtcdServers = 0, 0 // fewer servers start sooner
		}
	})
	if err != nil {
		return fmt.Errorf("grade: %w", err)
	}
	err = g.grade(ctx, lab)
	if err = errors.Join(err, lab.Close(), killStrays()); err != nil {
		return fmt.Errorf("grade: %w", err)
	}
	return g.conclude(ctx, out, errOut)
}

// grading is the grading of one submission.
type grading struct {
	*gradeFlags
	began          time.Time
	text, progress io.Writer
	contract       []lockstest.Outcome
	results        []experiment.Result
	found          map[string]grade.Finding // by requirement
}

// requirements returns the requirements that apply to a lock with this hello.
func (g *grading) requirements() []grade.Requirement {
	card := g.hello.Card()
	claims := map[string]lockstest.Claim{}
	for _, c := range lockstest.Checks() {
		claims[c.Name] = c.Claim(card)
	}
	hazards := experiment.HazardsOf(experiment.Card{Card: card})
	return slices.DeleteFunc(g.exercise.Requirements(), func(r grade.Requirement) bool {
		return r.Check != "" && claims[r.Check] == lockstest.Silent || r.Hazard != "" && !slices.Contains(hazards, r.Hazard)
	})
}

func (g *grading) grade(ctx context.Context, lab *rig.Rig) error {
	limited, cancel := context.WithDeadlineCause(ctx, g.began.Add(gradeLimit), fmt.Errorf("the grade took longer than %v", gradeLimit))
	defer cancel()
	required := g.requirements()
	wanted := func(check string) bool {
		return slices.ContainsFunc(required, func(r grade.Requirement) bool { return r.Check == check })
	}
	_, _ = fmt.Fprintf(g.text, "Exercise %d: %s. %s %s, %s, on %s\n\n", g.exercise.Number, g.exercise.Title.In(language()),
		g.hello.Library, g.hello.Version, g.hello.Language, strings.Join(g.hello.Backends, ", "))
	printed := contractPrinter(g.text)
	outcomes, err := contract(limited, lab.Addresses(), g.line, g.hello, wanted, func(o lockstest.Outcome) {
		printed(o)
		g.checked(o)
	})
	if g.contract = outcomes; err != nil && limited.Err() == nil {
		return err
	}
	if _, basic := failedChecks(g.contract); basic { // these hazards may show two holders in a timeline
		limited, cancel = context.WithTimeout(limited, 20*time.Second)
		defer cancel()
		required = slices.DeleteFunc(required, func(r grade.Requirement) bool { return r.Hazard != "race" && r.Hazard != "replica-race" })
	}
	// The new ones first, because the time may be over before the last one.
	slices.SortStableFunc(required, func(a, b grade.Requirement) int { return g.rank(a) - g.rank(b) })
	if err := g.inject(limited, lab, required); err != nil && limited.Err() == nil {
		return err
	}
	return ctx.Err()
}

// rank orders the new requirements of the exercise before those of earlier ones.
func (g *grading) rank(r grade.Requirement) int {
	if slices.Contains(g.exercise.New, r) {
		return 0
	}
	return 1
}

func (g *grading) checked(o lockstest.Outcome) {
	f := grade.Finding{Requirement: o.Check, Met: o.Failed == "", Checked: true, Found: api.Text{EN: o.Claimed}}
	if o.Failed != "" {
		f.Found.EN = o.Failed
	}
	g.found[o.Check] = f
}

// inject injects the hazards among the requirements, one after the other.
func (g *grading) inject(ctx context.Context, lab *rig.Rig, required []grade.Requirement) error {
	bed, err := experiment.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	w := gradeWatcher{&judgeWatcher{breakWatcher: newBreakWatcher(g.progress), text: g.text, width: checkWidth}}
	defer w.close()
	for _, r := range required {
		if r.Hazard == "" {
			continue
		}
		store, err := experiment.OpenStore("")
		if err != nil {
			return err
		}
		plan := experiment.Plan{Hazards: []string{r.Hazard}, Strategies: []string{adapter.ID}, Fenced: r.Fenced, Seed: 1}
		if err := experiment.Perform(ctx, bed, plan, store, w); ctx.Err() != nil {
			return err
		} else if err != nil {
			g.found[r.Name()] = grade.Finding{Requirement: r.Name(), Checked: true, Found: api.Textf("The experiment failed: %v", "实验出错：%v", err)}
			continue
		}
		for _, result := range store.Results() {
			if _, basic := failedChecks(g.contract); basic && !doubleGrant(result) && result.Verdict != api.Safe {
				continue // the failed check is the reason
			}
			result.Adapter = g.typed
			g.results = append(g.results, result)
			g.found[r.Name()] = grade.Finding{
				Requirement: r.Name(), Checked: true, Met: result.Verdict == api.Safe,
				Found: api.Text{EN: matrix.Cause(result, "en"), ZH: matrix.Cause(result, "zh")},
			}
		}
	}
	return nil
}

// unchecked says why a requirement was not checked.
func (g *grading) unchecked() api.Text {
	if _, basic := failedChecks(g.contract); basic {
		return api.Text{EN: "Not checked, because a basic check failed.", ZH: "没有检查，因为一项基本检查失败了。"}
	}
	return api.Textf("Not checked within %v. Grade it again on a machine with less load.", "%v 内没有检查完，请在负载较低的机器上重新评分。", gradeLimit)
}

// doubleGrant reports whether a second request got the lock long before the lease of the first ended.
func doubleGrant(r experiment.Result) bool {
	return r.Verdict == api.Broken && r.NextGrantMS > 0 && r.NextGrantMS < float64(experiment.Lease.Milliseconds())/2
}

// findings returns a finding for each requirement, also for those that were not checked.
func (g *grading) findings() (all []grade.Finding) {
	for i, r := range g.requirements() {
		f, ok := g.found[r.Name()]
		if !ok {
			f = grade.Finding{Requirement: r.Name(), Found: g.unchecked()}
		}
		f.Kept = i < len(g.requirements())-len(g.exercise.New)
		all = append(all, f)
	}
	return all
}

// gradeWatcher prints verdicts without the claims of the lock, which do not count here.
type gradeWatcher struct{ *judgeWatcher }

func (w gradeWatcher) End(e experiment.Experiment, results []experiment.Result, took time.Duration) {
	results = slices.Clone(results)
	for i := range results {
		results[i].Claim = experiment.Silent
	}
	w.judgeWatcher.End(e, results, took)
}
