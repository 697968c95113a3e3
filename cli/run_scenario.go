package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"oversell/lab/load"
	"oversell/lab/rig"
	"oversell/lab/scenario"
	"oversell/view/report"
	"oversell/view/terminal"
)

type scenarioFlags struct {
	scenario.Scenario
	guards []string
	chosen []scenario.Guard
	runs   int
	lab    rig.Addresses // of --target, --replicas and --token
	files  files
	quiet  bool
}

func scenarioCommand(s scenario.Scenario) *cobra.Command {
	flags := scenarioFlags{Scenario: s}
	var ids []string
	for _, g := range s.Guards {
		ids = append(ids, g.ID)
	}
	cmd := &cobra.Command{
		Use:   s.ID,
		Short: s.Title.EN,
		Long: s.Title.EN + `. Runs in its own lab with each guard, or
with those of --guard: ` + strings.Join(ids, ", ") + `.
The lab starts servers of this machine, and ` + strconv.Itoa(s.Replicas) + ` replicas. With --target, the scenario runs on a
lab that already runs, such as that of Docker. It pauses requests in single replicas, so it
needs their addresses, too. For a lab of oversell lab, it finds them.

Exit status: 0 if all guards do what they claim; 1 if a safe guard broke, an unsafe one
held, or a run could not be completed; 2 for a wrong command line; 130 after Ctrl-C.`,
		Example: `  oversell run ` + s.ID + `
  oversell run ` + s.ID + ` --guard ` + ids[0] + "," + ids[len(ids)-1] + ` --target http://127.0.0.1:8080`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              checked(&flags.files, flags.check, flags.run),
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.guards, "guard", ids, "guards, separated by commas")
	f.IntVar(&flags.runs, "runs", 1, "number of runs with each guard")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print only the result, no progress")
	f.StringVar(&flags.lab.Target, "target", "", "run on the lab at `URL`, and start none")
	f.StringSliceVar(&flags.lab.Replicas, "replicas", nil, "`URLS` of the replicas of the lab at --target, separated by commas")
	addToken(f, &flags.lab.Token, "token of the lab at --target (default $LAB_TOKEN, or "+defaultToken+")")
	flags.files.add(f, "json", "write the results to `FILE`, an array of objects; - means stdout")
	_ = cmd.RegisterFlagCompletionFunc("guard", cobra.FixedCompletions(ids, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *scenarioFlags) check(*cobra.Command, []string) error {
	for _, id := range f.guards {
		g, err := f.Guard(id)
		if err != nil {
			return err
		}
		f.chosen = append(f.chosen, g)
	}
	if f.runs < 1 {
		return fmt.Errorf("runs %d: must be 1 or more", f.runs)
	}
	return nil
}

func (f *scenarioFlags) run(ctx context.Context, out, errOut io.Writer) error {
	addrs, closeLab, err := f.openLab(ctx, errOut)
	if err != nil {
		return err
	}
	service := scenario.Connect(addrs)
	defer service.Close()
	text := f.files.textOutput(out, errOut)
	results, err := f.runAll(ctx, service, text)
	if len(results) > 1 {
		report.Guards(text, results, terminal.Of(text))
	}
	writers := map[string]func(io.Writer) error{"json": func(w io.Writer) error { return report.JSON(w, results) }}
	return errors.Join(err, f.files.write(writers, out, errOut), closeLab())
}

// openLab returns the lab at --target, or starts one.
func (f *scenarioFlags) openLab(ctx context.Context, errOut io.Writer) (addrs rig.Addresses, closeLab func() error, err error) {
	if f.lab.Target == "" {
		if len(f.lab.Replicas) > 0 {
			return addrs, nil, usage("--replicas is only for the lab at --target: without it, the command starts %d replicas", f.Replicas)
		}
		lab, err := startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) { cfg.Replicas = f.Replicas })
		if err != nil {
			return addrs, nil, err
		}
		return lab.Addresses(), lab.Close, nil
	}
	addrs.Token = f.lab.Token
	for i, given := range append([]string{f.lab.Target}, f.lab.Replicas...) {
		url, err := load.ParseTarget(given)
		if err != nil {
			return addrs, nil, &exit{2, err}
		}
		if i == 0 {
			addrs.Target = url.String()
		} else {
			addrs.Replicas = append(addrs.Replicas, url.String())
		}
	}
	running, err := rig.Running()
	if err == nil && addrs.Target == running.Target && len(addrs.Replicas) == 0 {
		addrs.Replicas, addrs.Token = running.Replicas, cmp.Or(addrs.Token, running.Token)
	}
	addrs.Token = cmp.Or(addrs.Token, defaultToken)
	switch have := len(addrs.Replicas); {
	case have == 0:
		return addrs, nil, usage("%s pauses requests in %d replicas: name them with --replicas URL,URL,...", f.ID, f.Replicas)
	case have < f.Replicas:
		return addrs, nil, usage("%s needs %d replicas, and the lab at --target has %d; it cannot start more. "+
			"Without --target, the command starts a lab with %d", f.ID, f.Replicas, have, f.Replicas)
	}
	return addrs, func() error { return nil }, nil
}

func (f *scenarioFlags) runAll(ctx context.Context, service scenario.Service, out io.Writer) ([]scenario.Result, error) {
	results, wrong := []scenario.Result{}, []error(nil)
	for _, guard := range f.chosen {
		for range f.runs {
			result, err := f.Run(ctx, service, guard)
			if err != nil {
				return results, errors.Join(append(wrong, fmt.Errorf("%s with guard %s: %w", f.ID, guard.ID, err))...)
			}
			results = append(results, result)
			report.Scenario(out, result, terminal.Of(out), language())
			switch {
			case result.AsClaimed():
			case result.Safe:
				wrong = append(wrong, fmt.Errorf("%s: guard %s claims to be safe, but broke: %s", f.ID, guard.ID, result.Violations()))
			default:
				wrong = append(wrong, fmt.Errorf("%s: guard %s should have broken, but held", f.ID, guard.ID))
			}
		}
	}
	return results, errors.Join(wrong...)
}
