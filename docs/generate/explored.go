package main

import (
	"context"
	"io"
	"slices"

	"oversell/api"
	"oversell/locks/catalog"
	"oversell/trial/explore"
	"oversell/view/report"
)

const recordedSearches = "docs/explored.json"

// explored is the content of docs/explored.json.
type explored struct {
	Results []explore.Result `json:"results"`
	// Sentences are for the pages and documents, by strategy.
	Sentences map[string][]api.Text `json:"sentences"`
}

// recordSearches adds the results of a file of explore --all to docs/explored.json, in place of older
// results of the same searches.
func recordSearches(_ context.Context, newer string) error {
	old, err := readJSON[explored](recordedSearches)
	if err != nil {
		return err
	}
	results, err := readJSON[[]explore.Result](newer)
	if err != nil {
		return err
	}
	x, all := explored{Sentences: map[string][]api.Text{}}, slices.Concat(results, old.Results)
	for _, card := range catalog.Cards() {
		for _, t := range explore.Scopes(card) {
			if i := slices.IndexFunc(all, func(r explore.Result) bool { return r.Scope == t }); i >= 0 {
				found := all[i]
				if found.Oversold == 0 { // a document shows no schedule of another harm
					found.Shortest = nil
				}
				x.Results = append(x.Results, found)
			}
		}
		if sentences := explore.Sentences(x.Results, card.ID); len(sentences) > 0 {
			x.Sentences[card.ID] = sentences
		}
	}
	return report.WriteFile(recordedSearches, func(w io.Writer) error { return report.WriteLines(w, x) })
}
