package experiment

import "oversell/lab/history"

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
