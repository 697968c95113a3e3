package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/locks/catalog"
	"oversell/view/matrix"
	"oversell/view/report"
)

const recordedMatrix = "docs/matrix.json"

// recordClaims adds newer's results to docs/matrix.json, in place of older ones of the same claims.
func recordClaims(_ context.Context, newer string) error {
	m, err := readJSON[matrix.Recorded](recordedMatrix)
	if err != nil {
		return err
	}
	some, err := readJSON[matrix.Recorded](newer)
	if err != nil {
		return err
	}
	m.Record(some.Matrix)
	slices.SortFunc(m.Rows, func(a, b matrix.Row) int { return rowPosition(a) - rowPosition(b) })
	return report.WriteFile(recordedMatrix, func(w io.Writer) error { return m.WriteJSON(w, m.About) })
}

// rowPosition sorts rows in the order of the catalogue, all rows with a fence after all rows without.
func rowPosition(r matrix.Row) int {
	cards := catalog.Cards()
	position := slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == r.Strategy })
	if r.Fenced {
		position += len(cards)
	}
	return position
}

func writeMatrix(w io.Writer) error {
	m, err := readJSON[matrix.Recorded](recordedMatrix)
	if err != nil {
		return err
	}
	return m.WriteMarkdown(w, m.About)
}

const recordedDatabases = "docs/databases.json" // of make databases

// recordDatabases writes docs/databases.json. Each folder in from has the results of one database:
// those of break --keep.
func recordDatabases(ctx context.Context, from string) error {
	folders, err := filepath.Glob(filepath.Join(from, "*", ""))
	if err != nil {
		return err
	}
	machine := measure.ThisMachine(ctx)
	all := matrix.Databases{Date: time.Now().Format(time.DateOnly), Machine: machine.String()}
	for _, folder := range folders {
		d, err := readDatabase(folder)
		if err != nil {
			return err
		}
		all.Servers = append(all.Servers, d)
	}
	if len(all.Servers) == 0 {
		return fmt.Errorf("%s has no results: run `make databases` first", from)
	}
	slices.SortFunc(all.Servers, func(a, b matrix.Database) int { return strings.Compare(a.Name(), b.Name()) })
	return report.WriteFile(recordedDatabases, all.WriteJSON)
}

// readDatabase reads the results of one database. It leaves out results of other servers: some
// hazards need MariaDB even if the others run on MySQL.
func readDatabase(folder string) (d matrix.Database, err error) {
	store, err := experiment.OpenStore(folder)
	if err != nil {
		return d, err
	}
	results := store.Results()
	if len(results) == 0 {
		return d, fmt.Errorf("%s has no results: run `make databases` again", folder)
	}
	d.Version = results[0].MySQL
	results = slices.DeleteFunc(slices.Clone(results), func(r experiment.Result) bool { return r.MySQL != d.Version })
	slices.SortStableFunc(results, func(a, b experiment.Result) int { return positionOf(a) - positionOf(b) })
	d.Matrix = matrix.Summarise(results)
	if lines := d.Uneven(); len(lines) > 0 {
		return d, fmt.Errorf("%s is not complete, run `make databases` again: %s", folder, strings.Join(lines, "; "))
	}
	return d, nil
}

func positionOf(r experiment.Result) int {
	return rowPosition(matrix.Row{Strategy: r.Strategy, Fenced: r.Fenced})
}

// readDatabases reads docs/databases.json. It returns an error if a verdict contradicts a card.
func readDatabases() (all matrix.Databases, err error) {
	all, err = readJSON[matrix.Databases](recordedDatabases)
	for _, d := range all.Servers {
		for _, line := range d.ClaimedBy(cardsClaim).Contradictions("en") {
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", recordedDatabases, d.Name(), line))
		}
	}
	return all, err
}

// cardsClaim returns what the cards of the catalogue claim now.
func cardsClaim(hazard api.Hazard, strategy string, fenced bool) api.Claim {
	cards := catalog.Cards()
	c := slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == strategy })
	e, known := experiment.Of(hazard)
	if c < 0 || !known {
		return api.Silent
	}
	return e.Claim(cards[c], fenced)
}

func writeDatabases(w io.Writer) error {
	all, err := readDatabases()
	if err != nil {
		return err
	}
	recorded, err := readJSON[matrix.Recorded](recordedMatrix)
	if err != nil {
		return err
	}
	return all.WriteMarkdown(w, recorded.Matrix)
}
