package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/history"
)

func results(claim Claim, verdicts ...api.Verdict) (results []Result) {
	for i, v := range verdicts {
		results = append(results, Result{Hazard: "pause", Strategy: "redis", Seed: int64(i + 1), Claim: claim, Verdict: v, Why: api.Text{EN: string(v)}})
	}
	return results
}

// TestResultStore checks that a later program reads all stored results, except an incomplete line.
func TestResultStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := results(Protects, api.Safe, api.Broken)
	first[0].Recording.Ops = []history.Op{{Strategy: "redis", Qty: 1, Outcome: history.OK}}
	first[1].Recording.Events = []history.Event{{Step: "read"}}
	if err := store.add(first); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(store.indexFile())
	if err != nil {
		t.Fatal(err)
	}
	cut := append(list, []byte(strings.TrimSpace(string(list)))[:40]...)
	if err := os.WriteFile(store.indexFile(), cut, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := OpenStore(dir)
	if err != nil || len(again.Results()) != 2 {
		t.Fatalf("%d results: %v", len(again.Results()), err)
	}
	if err := again.add(results(Protects, api.Safe, api.Safe, api.Safe)[2:]); err != nil {
		t.Fatal(err)
	}
	last, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{Card: Card{api.Card{ID: "redis"}}}
	for seed := int64(1); seed <= 4; seed++ {
		if last.has("pause", s, seed) != (seed <= 3) {
			t.Errorf("seed %d is stored: %v", seed, seed > 3)
		}
	}
	if last.has("crash", s, 1) || last.has("pause", Subject{Card: s.Card, Fenced: true}, 1) {
		t.Error("there is a result that never ran")
	}
	recorded, err := last.WithRecordings()
	if err != nil || len(recorded[0].Recording.Ops) != 1 || len(recorded[1].Recording.Events) != 1 {
		t.Errorf("the recordings: %+v, %v", recorded, err)
	}
}

// TestEndlessFile: in a folder that the user names, a file may be a link to a device without an end.
func TestEndlessFile(t *testing.T) {
	dir := t.TempDir()
	store, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	one := results(Protects, api.Safe)[0]
	if err := os.MkdirAll(filepath.Dir(store.recordingFile(one)), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{store.recordingFile(one), store.indexFile()} {
		if err := os.Symlink("/dev/zero", file); err != nil {
			t.Fatal(err)
		}
	}
	for _, read := range []func() error{
		func() error { _, err := store.WithRecording(one); return err },
		func() error { _, err := OpenStore(dir); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "longer than 256 MB") {
			t.Errorf("%v, want that the file is too long", err)
		}
	}
}
