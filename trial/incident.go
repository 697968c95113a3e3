package trial

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

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/view/terminal"
)

// Incident is a public report of a fault in a lock, with a program that shows it.
type Incident struct {
	ID, Report string
	Title      api.Text
	Cause      api.Text
	Library    string
	Language   string
	Trials     []IncidentTrial
}

// IncidentTrial runs the program of an incident with one version of the library. It ends with 0 if
// the fault does not show (green), and with 1 if it does (red). Its last line is a sentence.
type IncidentTrial struct{ Version, Command, Expect string }

// IncidentResult is what a trial has found.
type IncidentResult struct {
	ID       string `json:"id"`
	Version  string `json:"version"`
	Found    string `json:"found"` // red or green
	Sentence string `json:"sentence"`
}

// Sign returns the sign of a verdict: red is bad, green is good.
func (r IncidentResult) Sign() string {
	return map[string]string{"green": terminal.Good, "red": terminal.Bad}[r.Found]
}

// IncidentRecord has the results of one run of all incidents.
type IncidentRecord struct {
	Date     string           `json:"date"`
	Versions []string         `json:"versions"` // of the servers
	Results  []IncidentResult `json:"results"`
}

// IncidentList and IncidentResults are files of the repository.
const (
	IncidentList    = "docs/incidents/incidents.json"
	IncidentResults = "docs/incidents/results.json"
)

const incidentLimit = 2 * time.Minute // of a trial

// Incidents returns the entries of the list with these ids, or all without ids.
func Incidents(ids []string) ([]Incident, error) {
	return choose(IncidentList, "incident", ids, func(i Incident) string { return i.ID })
}

// Repeat runs the trials one after the other: some of them pause a server. It counts those that
// found something else than expected.
func Repeat(
	ctx context.Context, at rig.Addresses, chosen []Incident, out io.Writer,
) (record IncidentRecord, wrong int, err error) {
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
			line := fmt.Sprintf("%s %s", r.Sign(), r.Sentence)
			if r.Found != t.Expect {
				wrong++
				line += fmt.Sprintf(" The list says: %s.", t.Expect)
			}
			_, _ = fmt.Fprintln(out, screen.Paint(r.Sign(), screen.Wrap(line, 2)))
		}
	}
	return record, wrong, nil
}

// run runs the program in a group of its own, on the servers of a lab.
func (t IncidentTrial) run(ctx context.Context, at rig.Addresses) (r IncidentResult, err error) {
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
	r = IncidentResult{Version: t.Version, Found: "green", Sentence: lines[len(lines)-1]}
	if err != nil {
		r.Found = "red"
	}
	if r.Sentence == "" {
		return r, fmt.Errorf("the program printed no sentence: %s", log.String())
	}
	return r, nil
}

// Keep writes the record to IncidentResults.
func (r IncidentRecord) Keep() error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(IncidentResults, append(text, '\n'), 0o644) //nolint:gosec // a document, which everybody may read
}
