package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/view/report"
	"oversell/view/terminal"
)

const (
	incidentList    = "docs/incidents/incidents.json"
	incidentResults = "docs/incidents/results.json"
	incidentLimit   = 2 * time.Minute // of a trial
)

// incident is a public report of a fault in a lock, with a program that shows it.
type incident struct {
	ID, Report        string
	Title, Cause      api.Text
	Library, Language string
	Trials            []incidentTrial
}

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

// Sign returns the sign of a verdict: red is bad, green is good.
func (r incidentResult) Sign() string {
	return map[string]string{"green": terminal.Good, "red": terminal.Bad}[r.Found]
}

// incidentRecord has the results of one run of all incidents.
type incidentRecord struct {
	Date     string           `json:"date"`
	Versions []string         `json:"versions"` // of the servers
	Results  []incidentResult `json:"results"`
}

// Found returns the versions with which the trials of a report were red or green.
func (i incidentRecord) Found(id, colour string) string {
	var versions []string
	for _, r := range i.Results {
		if r.ID == id && r.Found == colour {
			versions = append(versions, r.Version)
		}
	}
	return strings.Join(versions, ", ")
}

// repeatIncidents repeats all incidents, or those with the ids, one after the other: some of them pause a server. It
// compares what they find with the list: make incidents.
func repeatIncidents(ctx context.Context, ids []string) (err error) {
	chosen, err := choose(incidentList, "incident", ids, func(i incident) string { return i.ID })
	if err != nil {
		return err
	}
	lab, err := startLab(ctx, func(cfg *rig.Config) { cfg.Replicas, cfg.Nginx = 0, false })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	at, versions := lab.Addresses(), map[string]string{}
	backend.Versions(ctx, versions, "", at.Redis, at.Zookeeper, at.Etcd)
	record, wrong := incidentRecord{Date: time.Now().Format(time.DateOnly)}, 0
	for name, v := range versions {
		record.Versions = append(record.Versions, name+" "+v)
	}
	slices.Sort(record.Versions)
	screen := terminal.Of(os.Stdout)
	for _, e := range chosen {
		fmt.Printf("\n%s: %s\n  %s\n", e.ID, e.Title.EN, e.Report)
		for _, t := range e.Trials {
			r, err := t.run(ctx, at)
			if err != nil {
				return fmt.Errorf("%s, version %s: %w", e.ID, t.Version, err)
			}
			r.ID = e.ID
			record.Results = append(record.Results, r)
			line := r.Sign() + " " + r.Sentence
			if r.Found != t.Expect {
				wrong++
				line += fmt.Sprintf(" The list says: %s.", t.Expect)
			}
			fmt.Println(screen.Paint(r.Sign(), screen.Wrap(line, 2)))
		}
	}
	if len(ids) == 0 {
		err = report.WriteFile(incidentResults, func(w io.Writer) error { return report.WriteLines(w, record) })
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d trials did not find what the list says", wrong)
	}
	return err
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

// writeIncidents prints a table of the incidents, and a section for each.
func writeIncidents(w io.Writer) error {
	all, err := readJSON[[]incident](incidentList)
	if err != nil {
		return err
	}
	record, err := readJSON[incidentRecord](incidentResults)
	if err != nil {
		return err
	}
	return fill(w, "incidents.md.tmpl", struct {
		incidentRecord
		Incidents []incident
	}{record, all})
}
