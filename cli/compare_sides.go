package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/lab/measure"
	"oversell/lab/ratio"
	"oversell/lab/rig"
)

// side is one of the two things that oversell compare compares.
type side struct {
	name    string
	plan    comparison.Plan
	program string // of a lab of its own; empty means this program
	file    string // with the results of an earlier comparison
}

// parseSide reads a strategy with its parameters, a URL of a service, the path of a program, or that of a file.
func parseSide(text, strategy string, plan comparison.Plan) (s side, err error) {
	s.name, s.plan = text, plan
	isURL := strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
	switch {
	case strings.HasSuffix(text, ".json"):
		s.file = text
		return s, nil
	case isURL:
		s.plan.Target = strings.TrimSuffix(text, "/")
	case strings.Contains(text, "/") && !strings.Contains(text, "?"):
		info, missing := os.Stat(text)
		if s.program, err = filepath.Abs(text); err != nil || missing != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return s, fmt.Errorf("%s is no program of oversell that can be started", text)
		}
	default:
		name, params, _ := strings.Cut(text, "?")
		s.plan.Strategies = []string{name}
		err = s.set(params)
		return s, err
	}
	if strategy == "" {
		return s, fmt.Errorf("%s sells with many strategies: name one with --strategy", text)
	}
	s.plan.Strategies = []string{strategy}
	return s, nil
}

// set applies the parameters of a strategy, such as hold=1ms.
func (s *side) set(params string) error {
	values, err := url.ParseQuery(params)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	durations := map[string]*time.Duration{
		"hold": &s.plan.Hold, "outside": &s.plan.Outside, "pause": &s.plan.Pause, "lease": &s.plan.Lease,
	}
	for name := range values {
		if durations[name] == nil {
			return fmt.Errorf("%s: %s is no parameter: use hold, outside, pause or lease", s.name, name)
		}
		if *durations[name], err = time.ParseDuration(values.Get(name)); err != nil {
			return fmt.Errorf("%s: %s: must be a duration such as 1ms", s.name, name)
		}
	}
	return nil
}

// subject measures a side. With ownLab, all servers are processes of this one.
func (s side) subject(ownLab bool) ratio.Subject {
	return ratio.Subject{Name: s.name, Round: func(ctx context.Context) (round ratio.Round, err error) {
		all, err := comparison.Run(ctx, s.plan, &runWatcher{lines: io.Discard})
		if err != nil {
			return round, err
		}
		result := all[0].Result
		if result.Errors > 0 || result.Verdict == api.Inconclusive {
			return round, fmt.Errorf("the rates cannot be compared: %s", result.Sentence.EN)
		}
		round = ratio.Round{Rate: measure.Ratio(float64(result.Sold), result.DurationS), P99MS: result.P99MS, Load: result.Load}
		if ownLab {
			round.Others = result.Others
		}
		return round, nil
	}}
}

// openLabs starts a lab for each program that a side needs. cores are those of its servers, see rig.Config.
func (f *compareFlags) openLabs(ctx context.Context, sides []*side, cores []int, errOut io.Writer) (closeAll func() error, err error) {
	labs := map[string]*rig.Rig{}
	closeAll = func() error {
		var errs []error
		for _, lab := range labs {
			errs = append(errs, lab.Close())
		}
		return errors.Join(errs...)
	}
	for _, s := range sides {
		if s.plan.Target != "" {
			s.plan.Token = f.token
			continue
		}
		lab := labs[s.program]
		if lab == nil {
			lab, err = startLab(ctx, f.quiet, errOut, func(cfg *rig.Config) {
				if s.program != "" {
					cfg.Binary = s.program
				}
				cfg.Cores = cores
				f.lab.configure(cfg)
			})
			if err != nil {
				return closeAll, err
			}
			labs[s.program] = lab
		}
		s.plan.Target, s.plan.Token = lab.Addresses().Target, lab.Addresses().Token
	}
	return closeAll, nil
}

// readRounds returns side A of an earlier comparison.
func readRounds(file string) (name string, rounds []ratio.Round, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user's own file
	var r ratio.Result
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && len(r.Pairs) == 0 {
		err = errors.New("it has no pairs: write it with oversell compare --json")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, pair := range r.Pairs {
		rounds = append(rounds, pair.A)
	}
	return r.A, rounds, nil
}
