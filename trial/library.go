package trial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"oversell/lab/suggest"
)

// Library is an entry of the list of libraries on trial.
type Library struct {
	ID      string // of its files and of its section in docs/libraries.md
	Command string // of its adapter: a program and its arguments, separated by spaces
}

// LibraryList and LibraryVerdicts are a file and a folder of the repository.
const (
	LibraryList     = "adapters/libraries.json"
	LibraryVerdicts = "docs/libraries"
)

// Libraries returns the entries of the list with these ids, or all without ids.
func Libraries(ids []string) ([]Library, error) {
	return choose(LibraryList, "library", ids, func(l Library) string { return l.ID })
}

// File returns the path of a file with verdicts on the library: .json, or .json.gz for recorded runs.
func (l Library) File(suffix string) string { return filepath.Join(LibraryVerdicts, l.ID+suffix) }

// choose returns the entries of a JSON list with these ids, or all without ids.
func choose[Entry any](list, kind string, ids []string, idOf func(Entry) string) (all []Entry, err error) {
	text, err := os.ReadFile(list) //nolint:gosec // a file of this repository
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(ids) == 0 {
		return all, err
	}
	var known []string
	for _, e := range all {
		known = append(known, idOf(e))
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, &suggest.Unknown{Kind: kind, Name: id, Known: known}
		}
	}
	return slices.DeleteFunc(all, func(e Entry) bool { return !slices.Contains(ids, idOf(e)) }), nil
}
