package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"

	"oversell/api"
	"oversell/locks/catalog"
	"oversell/view/matrix"
	"oversell/view/report"
)

const recordedMatrix = "docs/matrix.json"

// recordClaims adds newer's results to docs/matrix.json, in place of older ones of the same claims.
func recordClaims(_ context.Context, newer string) error {
	m, about, err := readMatrix(recordedMatrix)
	if err != nil {
		return err
	}
	some, _, err := readMatrix(newer)
	if err != nil {
		return err
	}
	m.Record(some)
	slices.SortFunc(m.Rows, func(a, b matrix.Row) int { return rowPosition(a) - rowPosition(b) })
	return report.WriteFile(recordedMatrix, func(w io.Writer) error { return m.WriteJSON(w, about) })
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

func readMatrix(path string) (m matrix.Matrix, about matrix.About, err error) {
	recorded, err := os.ReadFile(path) //nolint:gosec // a file of this repository, or the one that was named
	if err != nil {
		return m, about, err
	}
	return matrix.ReadMatrix(bytes.NewReader(recorded))
}

func writeMatrix(w io.Writer) error {
	m, about, err := readMatrix(recordedMatrix)
	if err != nil {
		return err
	}
	return m.WriteMarkdown(w, about)
}
