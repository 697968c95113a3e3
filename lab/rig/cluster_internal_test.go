package rig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindFile checks that the error for a missing file names the file.
func TestFindFile(t *testing.T) {
	dir := t.TempDir()
	pattern := filepath.Join(dir, "lib*", "libgalera_smm.so")
	if _, err := findFile("galera-4", pattern); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "galera-4") {
		t.Errorf("nothing there: %v", err)
	}
	library := filepath.Join(dir, "lib64", "libgalera_smm.so")
	if err := os.Mkdir(filepath.Dir(library), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := findFile("galera-4", "/nowhere/*", pattern); got != library || err != nil {
		t.Errorf("found %q, %v, want %q", got, err, library)
	}
}
