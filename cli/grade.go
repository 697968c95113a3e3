package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/measure"
	"oversell/lab/rig"
	"oversell/trial"
	"oversell/trial/grade"
	"oversell/view/terminal"
)

const gradeLong = `Starts a separate lab, and runs the command as an adapter: a student's program that offers a lock
on its standard input and output (see docs/adapter.md). It checks what the exercise asks for: checks
of the contract, and hazards. It prints the score, the first counterexample, and a hint with the
strategy whose lesson it is. Without arguments, it lists the exercises; docs/exercises has their texts.

Exit status:
  0    all requirements are met
  1    a requirement is not met, or could not be checked
  2    the program does not follow the protocol, lacks a capability, or the command line is wrong
  130  stopped by Ctrl-C, without a score`

type gradeFlags struct {
	exercise grade.Exercise
	lock     trial.Lock
	quiet    bool
	files    files
	command  string // as typed
}

func gradeCommand() *cobra.Command {
	var flags gradeFlags
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
				listGraded(cmd.OutOrStdout())
				return nil
			}
			adoptStrays()
			return errors.Join(checked(&flags.files, flags.check, flags.run)(cmd, args), killStrays())
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
		return usage("the student's command is missing: write it after --. Usage: %s", cmd.UseLine())
	case dash != 1:
		return usage("name one exercise before --. List them: %s", cmd.CommandPath())
	}
	return nil
}

func listGraded(out io.Writer) {
	var rows [][]string
	for _, e := range grade.Exercises() {
		rows = append(rows, []string{strconv.Itoa(e.Number), e.Name, e.Title.In(language()), "docs/exercises/" + e.Page() + ".md"})
	}
	fmt.Fprint(out, terminal.Columns(rows...))
}

func (f *gradeFlags) check(cmd *cobra.Command, args []string) (err error) {
	if f.exercise, err = grade.Find(args[0]); err != nil {
		return err
	}
	if f.lock, err = trial.Greet(cmd.Context(), args[1:]...); err != nil {
		return err
	}
	f.command = commandLine(cmd, args[:1]) + " -- " + f.lock.Command
	return f.exercise.Suits(f.lock.Hello)
}

func (f *gradeFlags) run(ctx context.Context, out, errOut io.Writer) error {
	began, text, progress := time.Now(), f.files.textOutput(out, errOut), errOut
	if f.quiet {
		progress = io.Discard
	}
	lab, err := startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) { f.exercise.Lab(cfg, f.lock) })
	if err != nil {
		return err
	}
	lang, h := language(), f.lock.Hello
	_, _ = fmt.Fprintf(text, "Exercise %d: %s. %s %s, %s, on %s\n\n", f.exercise.Number, f.exercise.Title.In(lang),
		h.Library, h.Version, h.Language, strings.Join(h.Backends, ", "))
	w := newTrialWatcher(text, progress)
	g, err := f.exercise.Run(ctx, began, lab, f.lock, w)
	w.bar.Clear()
	if err := errors.Join(err, lab.Close()); err != nil {
		return err
	}
	g.Command = f.command
	g.Print(text, lang)
	failed := f.files.write(map[string]func(io.Writer) error{
		"json": g.WriteJSON,
		"html": func(w io.Writer) error { return g.WritePage(w, measure.ThisMachine(ctx), language()) },
	}, out, errOut)
	if failed == nil && !g.Passed() {
		return &exit{1, nil}
	}
	return failed
}
