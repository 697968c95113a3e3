package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"oversell/lab/history"
)

// ResultStore keeps results and recordings in a folder, where an interrupted plan can continue.
type ResultStore struct {
	dir     string
	results []Result
}

// OpenStore opens the store in dir, and creates a missing folder. An empty dir means memory only.
func OpenStore(dir string) (*ResultStore, error) {
	if dir == "" {
		return &ResultStore{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // readable by every user
		return nil, fmt.Errorf("store the results: %w", err)
	}
	s := &ResultStore{dir: dir}
	text, err := readBounded(s.indexFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the stored results: %w", err)
	}
	for line := range bytes.Lines(text) {
		var experiment []Result
		// A line cut off by a full disk or a kill is ignored, so its experiment runs again.
		if json.Unmarshal(line, &experiment) == nil {
			s.results = append(s.results, experiment...)
		}
	}
	return s, nil
}

// readBounded reads a file of a folder that the user has named. A file without an end would fill the memory.
func readBounded(path string) ([]byte, error) {
	const longest = 256 << 20
	file, err := os.Open(path) //nolint:gosec // in the user's folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, longest+1))
	if err == nil && len(text) > longest {
		err = fmt.Errorf("%s is longer than %d MB: it is no result of an experiment", path, longest>>20)
	}
	return text, err
}

func (s *ResultStore) indexFile() string { return filepath.Join(s.dir, "results.jsonl") }

// Results returns all results so far.
func (s *ResultStore) Results() []Result { return s.results }

func (s *ResultStore) has(hazard string, subject Subject, seed int64) bool {
	return slices.ContainsFunc(s.results, func(r Result) bool {
		return r.Hazard == hazard && r.Seed == seed && r.Strategy == subject.Card.ID && r.Fenced == subject.Fenced
	})
}

// add stores the results of one experiment in one line: all of them or none.
func (s *ResultStore) add(results []Result) error {
	s.results = append(s.results, results...)
	if s.dir == "" {
		return nil
	}
	for _, r := range results {
		var text bytes.Buffer
		if err := r.Recording.Write(&text); err != nil {
			return err
		}
		if err := os.WriteFile(s.recordingFile(r), text.Bytes(), 0o644); err != nil { //nolint:gosec // readable by every user
			return fmt.Errorf("store the recording: %w", err)
		}
	}
	text, err := json.Marshal(results)
	if err != nil {
		return fmt.Errorf("store the results: %w", err)
	}
	file, err := os.OpenFile(s.indexFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // readable by every user
	if err != nil {
		return fmt.Errorf("store the results: %w", err)
	}
	// The first newline ends an incomplete line that an earlier program may have written.
	_, err = fmt.Fprintf(file, "\n%s\n", text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("store the results: %w", err)
	}
	return nil
}

func (s *ResultStore) recordingFile(r Result) string {
	name := r.Hazard + "-" + r.Strategy
	if r.Fenced {
		name += "-fenced"
	}
	return filepath.Join(s.dir, fmt.Sprintf("%s-%d.jsonl", name, r.Seed))
}

// WithRecordings returns all results with their recordings, also those of an earlier program.
func (s *ResultStore) WithRecordings() ([]Result, error) {
	for i, r := range s.results {
		var err error
		if s.results[i], err = s.WithRecording(r); err != nil {
			return nil, err
		}
	}
	return s.results, nil
}

// WithRecording returns one of the results with its recording.
func (s *ResultStore) WithRecording(r Result) (Result, error) {
	if len(r.Recording.Ops)+len(r.Recording.Events) > 0 || s.dir == "" {
		return r, nil
	}
	text, err := readBounded(s.recordingFile(r))
	if err != nil {
		return r, fmt.Errorf("read the recording: %w", err)
	}
	if r.Recording, err = history.ReadRecording(bytes.NewReader(text)); err != nil {
		return r, fmt.Errorf("%s: %w", s.recordingFile(r), err)
	}
	return r, nil
}

// RecordedRun is a result with its recording, which JSON otherwise leaves out.
type RecordedRun struct {
	Result
	Recording history.Recording
}

// RecordedRuns returns the results in compressed JSON, each with its recording.
func RecordedRuns(compressed []byte) (runs []Result, err error) {
	var stored []RecordedRun
	if err := history.Decompress(compressed, &stored); err != nil {
		return nil, err
	}
	for _, s := range stored {
		s.Result.Recording = s.Recording
		runs = append(runs, s.Result)
	}
	return runs, nil
}
