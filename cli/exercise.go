package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"oversell/lab/exercise"
	"oversell/lab/rig"
	"oversell/view/terminal"
)

const exerciseLong = `Plays an exercise: sessions named A, B and so on send statements to a real server, and the replies
are printed as they come. A statement that waits for a lock is shown as waiting, and its reply
when it comes. The comments are in English, or in Chinese if LANG or LC_ALL begins with zh.

Without --lab, the command starts a small lab with only the servers that the exercise needs.
The exercises use tables, keys and nodes of their own, whose names begin with exercise, and
remove them at the end. (Two use names of the texts: redis-script the keys aaa, bbb and ccc, lock-table the table LOCK.)
The files in lab/exercise can be read like a transcript.

Exit status:
  0    every reply was the expected one
  1    a reply was another one, or something failed
  2    the exercise does not exist, or the command line is wrong
  130  stopped by Ctrl-C`

func exerciseCommand() *cobra.Command {
	var lab string
	cmd := &cobra.Command{
		Use:   "exercise [NAME]",
		Short: "Play a small exercise in two sessions of MySQL, Redis or ZooKeeper",
		Long:  exerciseLong,
		Example: `  oversell exercise
  oversell exercise isolation
  LANG=zh_CN.UTF-8 oversell exercise znodes
  oversell exercise redis-multi --lab running`,
		Args:              between(0, 1),
		ValidArgsFunction: offerExercises(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listExercises(cmd.OutOrStdout())
			}
			chosen, err := exercise.Find(args[0])
			if err != nil {
				return &exit{2, err}
			}
			return playExercise(cmd, chosen, lab)
		},
	}
	cmd.Flags().StringVar(&lab, "lab", "", labUsage+"; without it, the command starts a small lab")
	return cmd
}

func listExercises(out io.Writer) error {
	all, err := exercise.All()
	if err != nil {
		return err
	}
	var rows [][]string
	for _, e := range all {
		rows = append(rows, []string{e.Name, e.Title.In(language())})
	}
	fmt.Fprint(out, terminal.Columns(rows...))
	return nil
}

func language() string {
	if strings.HasPrefix(os.Getenv("LC_ALL")+os.Getenv("LC_MESSAGES")+os.Getenv("LANG"), "zh") {
		return "zh"
	}
	return "en"
}

func playExercise(cmd *cobra.Command, chosen exercise.Exercise, lab string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if lab != "" {
		addrs, err := labAddresses(lab, cmd.Root().CommandPath())
		if err != nil {
			return err
		}
		return chosen.Play(ctx, addrs, out, language())
	}
	started, err := startLab(ctx, false, cmd.ErrOrStderr(), func(cfg *rig.Config) { *cfg = chosen.Needs() })
	if err != nil {
		return err
	}
	return errors.Join(chosen.Play(ctx, started.Addresses(), out, language()), started.Close())
}
