package main

import (
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

// incidents are the reports, and what their trials found.
type incidents struct {
	trial.IncidentRecord
	Incidents []trial.Incident
}

// Found returns the versions with which the trials of a report were red or green.
func (i incidents) Found(id, colour string) string {
	var versions []string
	for _, r := range i.Results {
		if r.ID == id && r.Found == colour {
			versions = append(versions, r.Version)
		}
	}
	return strings.Join(versions, ", ")
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
	return fill(w, "incidents.md.tmpl", incidents{record, all})
}
