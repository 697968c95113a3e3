package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"oversell/lab/rig"
	"oversell/trial"
)

// repeatIncidents repeats all incidents, or those with the ids: make incidents.
func repeatIncidents(ctx context.Context, ids []string) error {
	chosen, err := trial.Incidents(ids)
	if err != nil {
		return err
	}
	lab, err := startLab(ctx, func(cfg *rig.Config) { cfg.Replicas, cfg.Nginx = 0, false })
	if err != nil {
		return err
	}
	record, wrong, err := trial.Repeat(ctx, lab.Addresses(), chosen, os.Stdout)
	if err = errors.Join(err, lab.Close()); err != nil {
		return err
	}
	if len(ids) == 0 {
		err = record.Keep()
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d trials did not find what the list says", wrong)
	}
	return err
}

// writeIncidents prints a table of the incidents, and a section for each.
func writeIncidents(w io.Writer) error {
	all, err := trial.Incidents(nil)
	if err != nil {
		return err
	}
	record, err := readJSON[trial.IncidentRecord](trial.IncidentResults)
	if err != nil {
		return err
	}
	found := map[[2]string]trial.IncidentResult{}
	for _, r := range record.Results {
		found[[2]string{r.ID, r.Version}] = r
	}
	out := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(out, "Recorded on %s, with %s.\n\n", record.Date, strings.Join(record.Versions, ", "))
	_, _ = fmt.Fprint(out, "| report | library | red | green |\n|---|---|---|---|\n")
	for _, e := range all {
		versions := map[string][]string{}
		for _, t := range e.Trials {
			r := found[[2]string{e.ID, t.Version}]
			versions[r.Found] = append(versions[r.Found], t.Version)
		}
		_, _ = fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", e.ID, e.Library, strings.Join(versions["red"], ", "), strings.Join(versions["green"], ", "))
	}
	for _, e := range all {
		_, _ = fmt.Fprintf(out, "\n### %s\n\n%s: [%s](%s), %s.\n\n%s\n\n", e.ID, e.Library, e.Title.EN, e.Report, e.Language, e.Cause.EN)
		for _, t := range e.Trials {
			r := found[[2]string{e.ID, t.Version}]
			_, _ = fmt.Fprintf(out, "- %s %s\n", r.Sign(), r.Sentence)
		}
		_, _ = fmt.Fprintf(out, "\nRepeat it: `make incidents incident=%s`.\n", e.ID)
	}
	return out.Flush()
}
