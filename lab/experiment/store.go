package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"oversell/lab/history"
)

// Evidence is a folder that keeps every cell as soon as it is known, and its
// recording: results.jsonl, and a file for each run. A matrix that was interrupted goes
// on where it stopped.
type ResultStore struct {
	dir     string
	results []Result
}

// Keep opens the folder, and makes it where it is missing. Without a folder the
// evidence is kept as long as the program runs.
func OpenStore(dir string) (*ResultStore, error) {
	if dir == "" {
		return &ResultStore{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody to read
		return nil, fmt.Errorf("keep the evidence: %w", err)
	}
	e := &ResultStore{dir: dir}
	text, err := os.ReadFile(e.indexFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	for line := range bytes.Lines(text) {
		var experiment []Result
		// A line that a full disk or a kill cut off is an experiment that was not done.
		if json.Unmarshal(line, &experiment) == nil {
			e.results = append(e.results, experiment...)
		}
	}
	return e, nil
}

func (e *ResultStore) indexFile() string { return filepath.Join(e.dir, "results.jsonl") }

// Cells are all that were kept so far.
func (e *ResultStore) Results() []Result { return e.results }

// has says whether the subject went through the hazard with this seed.
func (e *ResultStore) has(hazard string, s Subject, seed int64) bool {
	return slices.ContainsFunc(e.results, func(c Result) bool {
		return c.Hazard == hazard && c.Seed == seed && c.Strategy == s.Card.ID && c.Fenced == s.Fenced
	})
}

// add keeps what one experiment has shown: one line, so all of it or none.
func (e *ResultStore) add(results []Result) error {
	defer func() { e.results = append(e.results, results...) }()
	if e.dir == "" {
		return nil
	}
	for _, c := range results {
		if err := e.write(c); err != nil {
			return err
		}
	}
	text, err := json.Marshal(results)
	if err != nil {
		return fmt.Errorf("keep the evidence: %w", err)
	}
	file, err := os.OpenFile(e.indexFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // for everybody to read
	if err != nil {
		return fmt.Errorf("keep the evidence: %w", err)
	}
	// A line that was cut off must not spoil this one.
	_, err = file.Write(append([]byte("\n"), append(text, '\n')...))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("keep the evidence: %w", err)
	}
	return nil
}

func (e *ResultStore) recordingFile(c Result) string {
	name := c.Hazard + "-" + c.Strategy
	if c.Fenced {
		name += "-fenced"
	}
	return filepath.Join(e.dir, fmt.Sprintf("%s-%d.jsonl", name, c.Seed))
}

func (e *ResultStore) write(c Result) error {
	file, err := os.Create(e.recordingFile(c))
	if err != nil {
		return fmt.Errorf("keep the recording: %w", err)
	}
	out := bufio.NewWriter(file)
	err = errors.Join(c.Recording.Write(out), out.Flush(), file.Close())
	if err != nil {
		return fmt.Errorf("keep the recording: %w", err)
	}
	return nil
}

// Recorded are all cells with their recordings, those of an earlier program's too.
func (e *ResultStore) WithRecordings() ([]Result, error) {
	for i, c := range e.results {
		if len(c.Recording.Ops)+len(c.Recording.Events) > 0 || e.dir == "" {
			continue
		}
		file, err := os.Open(e.recordingFile(c))
		if err != nil {
			return nil, fmt.Errorf("the recording: %w", err)
		}
		e.results[i].Recording, err = history.ReadRecording(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("the recording of %s: %w", file.Name(), err)
		}
	}
	return e.results, nil
}
