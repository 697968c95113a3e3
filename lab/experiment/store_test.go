package experiment

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

func results(claim api.Claim, verdicts ...api.Verdict) (results []Result) {
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
	first := results(api.Protects, api.Safe, api.Broken)
	first[0].Recording = history.Recording{
		Start: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Stock: 10, Lease: 3 * time.Second, Renews: true,
		Ops:    []history.Op{{Strategy: "redis", Qty: 1, Outcome: history.OK}},
		Events: []history.Event{{Strategy: "redis", Step: "granted", Owner: "o1", At: 1}},
		Spans:  []history.Span{{What: "stop", Who: "replica-1", From: 1, To: 2}},
	}
	if err := store.add(first); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(store.file())
	if err != nil {
		t.Fatal(err)
	}
	cut := append(list, []byte(strings.TrimSpace(string(list)))[:40]...)
	if err := os.WriteFile(store.file(), cut, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := OpenStore(dir)
	if err != nil || len(again.Results()) != 2 {
		t.Fatalf("%d results: %v", len(again.Results()), err)
	}
	if err := again.add(results(api.Protects, api.Safe, api.Safe, api.Safe)[2:]); err != nil {
		t.Fatal(err)
	}
	last, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := player.Subject{Card: api.Card{ID: "redis"}}
	for seed := int64(1); seed <= 4; seed++ {
		if last.has("pause", s, seed) != (seed <= 3) {
			t.Errorf("seed %d is stored: %v", seed, seed > 3)
		}
	}
	if last.has("crash", s, 1) || last.has("pause", player.Subject{Card: s.Card, Fenced: true}, 1) {
		t.Error("there is a result that never ran")
	}
	if got := last.Results()[0].Recording; !reflect.DeepEqual(got, first[0].Recording) {
		t.Errorf("read %+v, stored %+v", got, first[0].Recording)
	}
}

// TestEndlessFile: in a folder that the user names, a file may be a link to a device without an end.
func TestEndlessFile(t *testing.T) {
	store := &ResultStore{dir: t.TempDir()}
	if err := os.Symlink("/dev/zero", store.file()); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(store.dir); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("%v, want that a line is too long", err)
	}
}
