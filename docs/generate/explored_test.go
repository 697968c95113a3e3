package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"oversell/docs"
	"oversell/locks/catalog"
	"oversell/trial/explore"
)

// TestExplored compares the recorded searches in docs/explored.json with the cards, in both directions.
// Each strategy must have all its searches, except for those that the explorer cannot run.
func TestExplored(t *testing.T) {
	var recorded explored
	if err := json.Unmarshal(docs.Explored, &recorded); err != nil {
		t.Fatal(err)
	}
	var without []string
	for _, card := range catalog.Cards() {
		scopes := explore.Scopes(card)
		if len(scopes) == 0 {
			without = append(without, card.ID)
		}
		for _, scope := range scopes {
			i := slices.IndexFunc(recorded.Results, func(r explore.Result) bool { return r.Scope == scope })
			if i < 0 {
				t.Errorf("%s, %v: no search is recorded: make explored strategy=%s", card.ID, scope.Bounds, card.ID)
				continue
			}
			if text := recorded.Results[i].Contradiction(card); text != "" {
				t.Error(text)
			}
		}
		if want := explore.Sentences(recorded.Results, card.ID); !reflect.DeepEqual(recorded.Sentences[card.ID], want) {
			t.Errorf("%s: the sentences are %v, want %v: make explored strategy=%s", card.ID, recorded.Sentences[card.ID], want, card.ID)
		}
	}
	want := []string{ // they need transactions of MySQL, or etcd
		"mutex-in-tx", "for-update", "share-mode", "version-naive", "version", "version-admitted", "db-row-naive", "db-row-recursive",
		"db-row-cleaned", "db-row", "db-row-fair", "get-lock", "etcd", "atomic", "skip-locked", "buckets", "reservation", "combining", "redis-stock",
	}
	if !slices.Equal(without, want) {
		t.Errorf("no searches for %v, want %v", without, want)
	}
}
