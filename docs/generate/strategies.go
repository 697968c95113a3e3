package main

import (
	"io"

	"oversell/api"
	"oversell/locks/catalog"
)

// writeStrategies prints the claims and summaries of all strategies, and what searches of all schedules
// say. Links are relative to docs.
func writeStrategies(lang string) func(io.Writer) error {
	return func(w io.Writer) error {
		searches, err := readJSON[explored](recordedSearches)
		if err != nil {
			return err
		}
		cards, files := catalog.Cards(), map[string]string{}
		for _, c := range cards {
			all, err := catalog.Source(c)
			if err != nil {
				return err
			}
			files[c.ID] = all[0].Name
		}
		return fill(w, "strategies.md.tmpl", struct {
			Chinese  bool
			Cards    []api.Card
			Searches map[string][]api.Text
			Files    map[string]string // the first of each strategy
		}{lang == "zh", cards, searches.Sentences, files})
	}
}
