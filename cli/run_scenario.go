package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
	"oversell/lab/scenario"
)

type scenarioFlags struct {
	guards []string
	runs   int
	files  files
	quiet  bool
}

// withScenarios makes each scenario a subcommand of run. The arguments of run are strategies, so no
// strategy may have a scenario's name.
func withScenarios(run *cobra.Command) *cobra.Command {
	for _, s := range scenario.All() {
		run.AddCommand(scenarioCommand(s))
	}
	return run
}

func scenarioCommand(s scenario.Scenario) *cobra.Command {
	flags := scenarioFlags{files: files{command: "run"}}
	var ids []string
	for _, g := range s.Guards {
		ids = append(ids, g.ID)
	}
	cmd := &cobra.Command{
		Use:   s.ID,
		Short: s.Title.EN,
		Long: s.Title.EN + `. Runs in its own lab with each guard, or
with those of --guard: ` + strings.Join(ids, ", ") + `.
The lab starts servers of this machine. Under Docker, use the page, which runs the
scenarios too.

Exit status: 0 if all guards do what they claim; 1 if a safe guard broke, an unsafe one
held, or a run could not be completed; 2 for a wrong command line; 130 after Ctrl-C.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &exit{2, err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ended(cmd.Context(), flags.run(cmd.Context(), s, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.guards, "guard", ids, "guards, separated by commas")
	f.IntVar(&flags.runs, "runs", 1, "number of runs with each guard")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print only the result, no progress")
	flags.files.add(f, "json", "write the results to `FILE`, an array of objects; - means stdout")
	return cmd
}

func (f *scenarioFlags) run(ctx context.Context, s scenario.Scenario, out, errOut io.Writer) error {
	var guards []scenario.Guard
	for _, id := range f.guards {
		g, err := s.Guard(id)
		if err != nil {
			return usage("run: %w", err)
		}
		guards = append(guards, g)
	}
	if f.runs < 1 {
		return usage("run: runs %d: must be 1 or more", f.runs)
	}
	if err := f.files.check(); err != nil {
		return err
	}
	lab, err := startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) { cfg.Replicas = s.Replicas })
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	service := scenario.Connect(lab.Addresses())
	defer service.Close()
	text := f.files.textOutput(out, errOut)
	results, err := f.runAll(ctx, s, guards, service, text)
	if len(results) > 1 {
		err = errors.Join(err, scenario.Table(text, results))
	}
	writers := map[string]func(io.Writer) error{"json": func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}}
	return errors.Join(err, f.files.write(writers, out, errOut), lab.Close())
}

func (f *scenarioFlags) runAll(ctx context.Context, s scenario.Scenario, guards []scenario.Guard, service scenario.Service, out io.Writer) ([]scenario.Result, error) {
	results, wrong := []scenario.Result{}, []error(nil)
	for _, guard := range guards {
		for range f.runs {
			result, err := s.Run(ctx, service, guard)
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
			switch {
			case result.AsClaimed():
			case result.Safe:
				wrong = append(wrong, fmt.Errorf("run: %s: guard %s claims to be safe, but broke: %s", s.ID, guard.ID, strings.Join(result.Broken, "; ")))
			default:
				wrong = append(wrong, fmt.Errorf("run: %s: guard %s should have broken, but held", s.ID, guard.ID))
			}
		}
	}
	return results, errors.Join(wrong...)
}
