package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"oversell/lab/report"
	"oversell/lab/rig"
	"oversell/lab/scenario"
)

// scenarioFlags are the flags of `oversell run coupon` and its like.
type scenarioFlags struct {
	guards []string
	runs   int
	json   string
	quiet  bool
}

// withScenarios makes the scenarios subcommands of run: their names are taken before a
// strategy could have them.
func withScenarios(run *cobra.Command) *cobra.Command {
	for _, s := range scenario.All() {
		run.AddCommand(scenarioCommand(s))
	}
	return run
}

func scenarioCommand(s scenario.Scenario) *cobra.Command {
	var flags scenarioFlags
	var ids []string
	for _, g := range s.Guards {
		ids = append(ids, g.ID)
	}
	cmd := &cobra.Command{
		Use:   s.ID,
		Short: s.Title.EN,
		Long: s.Title.EN + `, told with each of its guards in a lab of its own, or
with those that --guard names: ` + strings.Join(ids, ", ") + `.
The lab starts servers of this machine: under Docker, use the page, which runs
the scenarios too.

Exit status: 0 all is as the guards claim, 1 a safe guard broke or an unsafe one held or
a run could not be finished, 2 a command line that can't be run, 130 stopped by Ctrl-C.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &exit{2, err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.run(cmd.Context(), s, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.guards, "guard", ids, "guards, separated by commas")
	f.IntVar(&flags.runs, "runs", 1, "runs with each guard")
	f.StringVar(&flags.json, "json", "", "write the results to `FILE`, an array of objects; - is stdout")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "no progress, only the result")
	return cmd
}

func (f *scenarioFlags) run(ctx context.Context, s scenario.Scenario, out, errOut io.Writer) error {
	var guards []scenario.Guard
	for _, id := range f.guards {
		g, err := s.Guard(id)
		if err != nil {
			return &exit{2, fmt.Errorf("run: %w", err)}
		}
		guards = append(guards, g)
	}
	if f.runs < 1 {
		return &exit{2, fmt.Errorf("run: runs %d: must be 1 or more", f.runs)}
	}
	if f.json != "" && f.json != toStdout {
		if err := report.CheckWritable(f.json); err != nil {
			return fmt.Errorf("run: --json: %w", err)
		}
	}
	shop, closeLab, err := f.openLab(ctx, s, errOut)
	if err != nil {
		return ended(ctx, fmt.Errorf("run: %w", err))
	}
	reader := out
	if f.json == toStdout {
		reader = errOut
	}
	results, err := f.tell(ctx, s, guards, shop, reader)
	if len(results) > 1 {
		err = errors.Join(err, scenario.Table(reader, results))
	}
	return ended(ctx, errors.Join(err, f.write(results, out), closeLab()))
}

// tell runs the scenario with each guard, and prints its sentences as they come.
func (f *scenarioFlags) tell(ctx context.Context, s scenario.Scenario, guards []scenario.Guard, shop scenario.Service, out io.Writer) ([]scenario.Result, error) {
	results, wrong := []scenario.Result{}, []error(nil)
	for _, guard := range guards {
		for range f.runs {
			result, err := s.Run(ctx, shop, guard)
			if err != nil {
				return results, errors.Join(append(wrong, fmt.Errorf("run: %s with guard %s: %w", s.ID, guard.ID, err))...)
			}
			results = append(results, result)
			sentence := result.Sentence.EN
			if chinese() {
				sentence = result.Sentence.ZH
			}
			if _, err := fmt.Fprintln(out, sentence); err != nil {
				return results, fmt.Errorf("run: %w", err)
			}
			if !result.AsClaimed() {
				wrong = append(wrong, fmt.Errorf("run: %s with guard %s is not as it claims: %s", s.ID, guard.ID, strings.Join(result.Broken, "; ")))
			}
		}
	}
	return results, errors.Join(wrong...)
}

// write writes the results where --json wants them.
func (f *scenarioFlags) write(results []scenario.Result, out io.Writer) error {
	in := func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	switch f.json {
	case "":
		return nil
	case toStdout:
		return in(out)
	}
	if err := report.WriteFile(f.json, in); err != nil {
		return fmt.Errorf("run: --json: %w", err)
	}
	return nil
}

// openLab brings up a lab with the replicas that the scenario needs.
func (f *scenarioFlags) openLab(ctx context.Context, s scenario.Scenario, errOut io.Writer) (scenario.Service, func() error, error) {
	lab := labFlags{replicas: s.Replicas, port: 1}
	cfg, err := lab.config(errOut)
	if err != nil {
		return scenario.Service{}, nil, err
	}
	cfg.Ports = rig.Ports{}
	if f.quiet {
		cfg.Log = nil
	} else {
		_, _ = fmt.Fprintln(errOut, "starting a lab")
	}
	started, err := rig.Start(ctx, cfg)
	if err != nil {
		return scenario.Service{}, nil, err
	}
	shop := scenario.Connect(started.Addresses())
	return shop, func() error {
		shop.Close()
		return started.Close()
	}, nil
}
