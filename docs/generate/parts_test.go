package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/api"
	"oversell/view/matrix"
	"oversell/view/report"
)

// copyDocs copies the documents into a folder, which becomes the current one.
func copyDocs(t *testing.T) (original string) {
	t.Helper()
	original, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS("docs", os.DirFS(filepath.Join(original, "docs"))); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", "README.zh-CN.md"} {
		if err := os.WriteFile(file, []byte(read(t, filepath.Join(original, file))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return original
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // a document
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocsAreCurrent generates the generated parts again in a copy of the documents, and expects no
// difference to the originals.
func TestDocsAreCurrent(t *testing.T) {
	original := copyDocs(t)
	if err := writeParts(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, ".md") && read(t, file) != read(t, filepath.Join(original, file)) {
			t.Errorf("%s: the generated parts are stale: run make docs", file)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDatabasesAgreeWithCards checks that no document can be generated from a recorded verdict on
// another database that contradicts a card.
func TestDatabasesAgreeWithCards(t *testing.T) {
	copyDocs(t)
	all, err := readDatabases()
	if err != nil || len(all.Servers) == 0 {
		t.Fatalf("%d servers, %v", len(all.Servers), err)
	}
	for _, row := range all.Servers[0].Rows {
		if row.Strategy == "none" {
			row.Summaries["race"] = matrix.Summary{Runs: 3, Verdict: api.Safe}
		}
	}
	if err := report.WriteFile(recordedDatabases, all.WriteJSON); err != nil {
		t.Fatal(err)
	}
	err = writeParts()
	const want = "none, race: the card claims that this breaks it, but it failed only in 0 of 3 runs."
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
