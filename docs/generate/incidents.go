package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/terminal"
)

// incident is a public report of a fault in a lock, with a program that shows it.
type incident struct {
	ID, Report string
	Title      api.Text
	Cause      api.Text
	Library    string
	Language   string
	Trials     []incidentTrial
}

func (i incident) id() string { return i.ID }

// incidentTrial runs the program of an incident with one version of the library. It ends with 0 if
// the fault does not show (green), and with 1 if it does (red). Its last line is a sentence.
type incidentTrial struct{ Version, Command, Expect string }

// incidentResult is what a trial has found.
type incidentResult struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	Found    string `json:"found"` // red or green
	Sentence string `json:"sentence"`
}

// incidentRecord has the results of one run of all incidents.
type incidentRecord struct {
	Date     string           `json:"date"`
	Versions []string         `json:"versions"` // of the servers
	Results  []incidentResult `json:"results"`
}

const (
	incidentList    = "docs/incidents/incidents.json"
	incidentResults = "docs/incidents/results.json"
	incidentLimit   = 2 * time.Minute // of a trial
)

// incidentsCommand repeats all incidents, or those with the ids: make incidents.
func incidentsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "incidents [ID...]",
		Short: "Repeat the bug reports of " + incidentList + ", and compare with what they say",
		RunE: func(cmd *cobra.Command, ids []string) error {
			chosen, err := choose[incident](incidentList, "incident", ids)
			if err != nil {
				return err
			}
			lab, err := startLab(cmd.Context(), func(cfg *rig.Config) { cfg.Replicas, cfg.Nginx = 0, false })
			if err != nil {
				return err
			}
			record, wrong, err := repeat(cmd.Context(), lab.Addresses(), chosen, cmd.OutOrStdout())
			if err = errors.Join(err, lab.Close()); err != nil {
				return err
			}
			if len(ids) == 0 {
				err = keepIncidents(record)
			}
			if err == nil && wrong > 0 {
				err = fmt.Errorf("%d trials did not find what the list says", wrong)
			}
			return err
		},
	}
}

// repeat runs the trials one after the other: some of them pause a server. It counts those that
// found something else than expected.
func repeat(ctx context.Context, at rig.Addresses, chosen []incident, out io.Writer) (record incidentRecord, wrong int, err error) {
	versions := map[string]string{}
	backend.Versions(ctx, versions, "", at.Redis, at.Zookeeper, at.Etcd)
	for name, v := range versions {
		record.Versions = append(record.Versions, name+" "+v)
	}
	slices.Sort(record.Versions)
	record.Date = time.Now().Format(time.DateOnly)
	screen := terminal.Of(out)
	for _, e := range chosen {
		_, _ = fmt.Fprintf(out, "\n%s: %s\n  %s\n", e.ID, e.Title.EN, e.Report)
		for _, t := range e.Trials {
			r, err := t.run(ctx, at)
			if err != nil {
				return record, wrong, fmt.Errorf("%s, version %s: %w", e.ID, t.Version, err)
			}
			r.ID = e.ID
			record.Results = append(record.Results, r)
			sign := map[string]string{"green": terminal.Good, "red": terminal.Bad}[r.Found]
			line := fmt.Sprintf("%s %s", sign, r.Sentence)
			if r.Found != t.Expect {
				wrong++
				line += fmt.Sprintf(" The list says: %s.", t.Expect)
			}
			_, _ = fmt.Fprintln(out, screen.Paint(sign, screen.Wrap(line, 2)))
		}
	}
	return record, wrong, nil
}

// run runs the program in a group of its own, on the servers of a lab.
func (t incidentTrial) run(ctx context.Context, at rig.Addresses) (r incidentResult, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, incidentLimit, fmt.Errorf("it did not end within %v", incidentLimit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", t.Command) //nolint:gosec // of the list
	cmd.Env = append(os.Environ(), at.ServeEnv()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var log strings.Builder
	cmd.Stderr = &log
	text, err := cmd.Output()
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	failed := (*exec.ExitError)(nil)
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) {
		return r, fmt.Errorf("%w: %s%s", err, text, log.String())
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	r = incidentResult{Version: t.Version, Found: "green", Sentence: lines[len(lines)-1]}
	if err != nil {
		r.Found = "red"
	}
	if r.Sentence == "" {
		return r, fmt.Errorf("the program printed no sentence: %s", log.String())
	}
	return r, nil
}

func keepIncidents(record incidentRecord) error {
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(incidentResults, append(text, '\n'), 0o644) //nolint:gosec // a document, which everybody may read
}
