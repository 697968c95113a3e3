package experiment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

// ResultStore keeps results and recordings in a folder, where an interrupted plan can continue.
type ResultStore struct {
	dir     string
	results []Result
}

// OpenStore opens the store in dir, and creates a missing folder. An empty dir means memory only.
func OpenStore(dir string) (*ResultStore, error) {
	s := &ResultStore{dir: dir}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // readable by every user
		return nil, fmt.Errorf("store the results: %w", err)
	}
	file, err := os.Open(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the stored results: %w", err)
	}
	defer func() { _ = file.Close() }()
	const longest = 256 << 20 // of a line: in a folder that the user has named, a file without an end would fill the memory
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var experiment []Result
		// A line cut off by a full disk or a kill is ignored, so its experiment runs again.
		if json.Unmarshal(lines.Bytes(), &experiment) == nil {
			s.results = append(s.results, experiment...)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the stored results: %s: %w", s.file(), err)
	}
	return s, nil
}

func (s *ResultStore) file() string { return filepath.Join(s.dir, "results.jsonl") }

// Results returns all results so far, with their recordings, also those of an earlier program.
func (s *ResultStore) Results() []Result { return s.results }

func (s *ResultStore) has(hazard api.Hazard, subject player.Subject, seed int64) bool {
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
	text, err := json.Marshal(results)
	if err != nil {
		return fmt.Errorf("store the results: %w", err)
	}
	file, err := os.OpenFile(s.file(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // readable by every user
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

// RecordedRuns returns the results in compressed JSON, each with its recording.
func RecordedRuns(compressed []byte) (runs []Result, err error) {
	err = history.Decompress(compressed, &runs)
	return runs, err
}
