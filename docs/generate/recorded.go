package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"oversell/lab/experiment"
	"oversell/lab/stepper"
	"oversell/view/matrix"
	"oversell/view/report"
)

// The recordings from which make site draws its pages, as compressed JSON.
const (
	recordedSteps = "docs/recorded/steps.json.gz" // of make steps
	recordedRuns  = "docs/recorded/runs.json.gz"  // of make timelines
)

// readJSON decodes a JSON file.
func readJSON[Content any](path string) (content Content, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository, or the one that was named
	if err != nil {
		return content, err
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return content, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

func readRuns() (runs []experiment.Result, err error) {
	compressed, err := os.ReadFile(recordedRuns)
	if err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	return experiment.RecordedRuns(compressed)
}

// recordRuns adds a run for each summary in the folder of break --keep, in place of older ones.
func recordRuns(_ context.Context, folder string) error {
	runs, err := readRuns()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	store, err := experiment.OpenStore(folder)
	if err != nil {
		return err
	}
	if len(store.Results()) == 0 {
		return fmt.Errorf("%s has no results: run `make break` first", folder)
	}
	for _, r := range matrix.Summarise(store.Results()).Typical(store.Results()) {
		if r, err = store.WithRecording(r); err != nil {
			return err
		}
		runs = slices.DeleteFunc(runs, func(old experiment.Result) bool { return sameSummary(old, r) })
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b experiment.Result) int { return strings.Compare(a.Hazard+" "+a.Name(), b.Hazard+" "+b.Name()) })
	stored := make([]experiment.RecordedRun, 0, len(runs))
	for _, r := range runs {
		stored = append(stored, experiment.RecordedRun{Result: r, Recording: r.Recording})
	}
	return writeRecorded(recordedRuns, stored)
}

func sameSummary(a, b experiment.Result) bool {
	return a.Hazard == b.Hazard && a.Strategy == b.Strategy && a.Fenced == b.Fenced
}

// readSteps returns the recorded steps of all strategies, by their ids.
func readSteps() (steps map[string]stepper.Graph, err error) {
	compressed, err := os.ReadFile(recordedSteps)
	if err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	return stepper.Recordings(compressed)
}

func writeRecorded(file string, from any) error {
	return report.WriteFile(file, func(w io.Writer) error {
		out, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		return errors.Join(json.NewEncoder(out).Encode(from), out.Close())
	})
}
