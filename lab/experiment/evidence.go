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
// recording: cells.jsonl, and a file for each run. A matrix that was interrupted goes
// on where it stopped.
type Evidence struct {
	dir   string
	cells []Cell
}

// Keep opens the folder, and makes it where it is missing. Without a folder the
// evidence is kept as long as the program runs.
func Keep(dir string) (*Evidence, error) {
	if dir == "" {
		return &Evidence{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody to read
		return nil, fmt.Errorf("keep the evidence: %w", err)
	}
	e := &Evidence{dir: dir}
	text, err := os.ReadFile(e.list())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	for line := range bytes.Lines(text) {
		var experiment []Cell
		// A line that a full disk or a kill cut off is an experiment that was not done.
		if json.Unmarshal(line, &experiment) == nil {
			e.cells = append(e.cells, experiment...)
		}
	}
	return e, nil
}

func (e *Evidence) list() string { return filepath.Join(e.dir, "cells.jsonl") }

// Cells are all that were kept so far.
func (e *Evidence) Cells() []Cell { return e.cells }

// has says whether the subject went through the hazard with this seed.
func (e *Evidence) has(hazard string, s Subject, seed int64) bool {
	return slices.ContainsFunc(e.cells, func(c Cell) bool {
		return c.Hazard == hazard && c.Seed == seed && c.Strategy == s.Card.ID && c.Fenced == s.Fenced
	})
}

// add keeps what one experiment has shown: one line, so all of it or none.
func (e *Evidence) add(cells []Cell) error {
	defer func() { e.cells = append(e.cells, cells...) }()
	if e.dir == "" {
		return nil
	}
	for _, c := range cells {
		if err := e.write(c); err != nil {
			return err
		}
	}
	text, err := json.Marshal(cells)
	if err != nil {
		return fmt.Errorf("keep the evidence: %w", err)
	}
	file, err := os.OpenFile(e.list(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // for everybody to read
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

func (e *Evidence) run(c Cell) string {
	name := c.Hazard + "-" + c.Strategy
	if c.Fenced {
		name += "-fenced"
	}
	return filepath.Join(e.dir, fmt.Sprintf("%s-%d.jsonl", name, c.Seed))
}

func (e *Evidence) write(c Cell) error {
	file, err := os.Create(e.run(c))
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
func (e *Evidence) Recorded() ([]Cell, error) {
	for i, c := range e.cells {
		if len(c.Recording.Ops)+len(c.Recording.Events) > 0 || e.dir == "" {
			continue
		}
		file, err := os.Open(e.run(c))
		if err != nil {
			return nil, fmt.Errorf("the recording: %w", err)
		}
		e.cells[i].Recording, err = history.ReadRecording(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("the recording of %s: %w", file.Name(), err)
		}
	}
	return e.cells, nil
}
