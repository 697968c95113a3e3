package experiment

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"

	"oversell/lab/history"
)

// RecordedRun is a result with its recording, which JSON otherwise leaves out.
type RecordedRun struct {
	Result
	Recording history.Recording
}

// RecordedRuns returns the results in compressed JSON, each with its recording.
func RecordedRuns(compressed []byte) (runs []Result, err error) {
	in, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read the recorded runs: %w", err)
	}
	var stored []RecordedRun
	if err := json.NewDecoder(in).Decode(&stored); err != nil {
		return nil, fmt.Errorf("read the recorded runs: %w", err)
	}
	for _, s := range stored {
		s.Result.Recording = s.Recording
		runs = append(runs, s.Result)
	}
	return runs, nil
}
