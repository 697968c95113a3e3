package history_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"oversell/lab/history"
)

func TestRecordingIsReadAsWritten(t *testing.T) {
	rec := history.Recording{
		Start: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Stock: 10, Lease: 3 * time.Second, Renews: true,
		Ops:    []history.Op{{Strategy: "redis", Qty: 1, Outcome: history.OK}},
		Events: []history.Event{{Strategy: "redis", Step: "granted", Owner: "o1", At: 1}},
		Spans:  []history.Span{{What: "stop", Who: "replica-1", From: 1, To: 2}},
	}
	var file bytes.Buffer
	if err := rec.Write(&file); err != nil {
		t.Fatal(err)
	}
	got, err := history.ReadRecording(&file)
	if err != nil || !reflect.DeepEqual(got, rec) {
		t.Errorf("read %+v, %v; written %+v", got, err, rec)
	}
}

// TestOldRecording reads a recording of an earlier version, which lacks the lease.
func TestOldRecording(t *testing.T) {
	rec, err := history.ReadRecording(strings.NewReader(`{"start":"2026-05-04T03:02:01Z","stock":10}` + "\n" + `{"event":{"step":"granted","at":1}}`))
	if err != nil || rec.Stock != 10 || rec.Lease != 0 || len(rec.Events) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
}
