package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"oversell/lab/experiment"
	"oversell/lab/suggest"
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

// choose returns the entries of a JSON list with these ids, or all without ids.
func choose[Entry any](list, kind string, ids []string, idOf func(Entry) string) (chosen []Entry, err error) {
	all, err := readJSON[[]Entry](list)
	if err != nil || len(ids) == 0 {
		return all, err
	}
	for _, id := range ids {
		e, err := suggest.Find(kind, id, all, idOf)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, e)
	}
	return chosen, nil
}

// readRecorded decodes a file of compressed recordings.
func readRecorded[Content any](file string, decode func(compressed []byte) (Content, error)) (content Content, err error) {
	compressed, err := os.ReadFile(file) //nolint:gosec // a file of this repository
	if err != nil {
		return content, fmt.Errorf("read a recording: %w", err)
	}
	return decode(compressed)
}

// recordRuns adds a run for each summary in the folder of break --keep, in place of older ones.
func recordRuns(_ context.Context, folder string) error {
	runs, err := readRecorded(recordedRuns, experiment.RecordedRuns)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	newer, err := typicalRuns(folder)
	if err == nil && len(newer) == 0 {
		err = fmt.Errorf("%s has no results: run `make break` first", folder)
	}
	if err != nil {
		return err
	}
	for _, r := range newer {
		runs = slices.DeleteFunc(runs, func(old experiment.Result) bool {
			return old.Hazard == r.Hazard && old.Strategy == r.Strategy && old.Fenced == r.Fenced
		})
	}
	runs = append(runs, newer...)
	slices.SortFunc(runs, func(a, b experiment.Result) int {
		return cmp.Or(cmp.Compare(a.Hazard, b.Hazard), cmp.Compare(a.Name(), b.Name()))
	})
	return writeRecorded(recordedRuns, runs)
}

// typicalRuns returns a run for each summary in a folder of --keep, with its recording.
func typicalRuns(folder string) ([]experiment.Result, error) {
	store, err := experiment.OpenStore(folder)
	if err != nil {
		return nil, err
	}
	return matrix.Summarise(store.Results()).Typical(store.Results()), nil
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
