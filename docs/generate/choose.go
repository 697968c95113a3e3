package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"oversell/lab/suggest"
)

// choose returns the entries of a list in JSON with these ids, or all without ids. kind is for the error.
func choose[T interface{ id() string }](file, kind string, ids []string) (all []T, err error) {
	list, err := os.ReadFile(file) //nolint:gosec // one of two constant paths
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var known []string
	for _, entry := range all {
		known = append(known, entry.id())
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, &suggest.Unknown{Kind: kind, Name: id, Known: known}
		}
	}
	return slices.DeleteFunc(all, func(entry T) bool { return len(ids) > 0 && !slices.Contains(ids, entry.id()) }), nil
}
