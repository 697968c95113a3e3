package report_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oversell/view/report"
)

func saying(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return strings.Join(names, " ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	for _, s := range []string{"first", "second"} {
		if err := report.CheckWritable(path); err != nil {
			t.Fatal(err)
		}
		if err := report.WriteFile(path, saying(s)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != s {
			t.Errorf("holds %q, want %q", got, s)
		}
	}
	if got := listing(t, dir); got != "out.json" {
		t.Errorf("left behind: %s", got)
	}
}

func TestCheckLeavesEverythingAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	if err := report.CheckWritable(path); err != nil || listing(t, dir) != "" {
		t.Errorf("%v, left behind: %s", err, listing(t, dir))
	}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report.CheckWritable(path); err != nil || content(t, path) != "old" || listing(t, dir) != "out.json" {
		t.Errorf("%v, %s, left behind: %s", err, content(t, path), listing(t, dir))
	}
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	if err := report.WriteFile(path, saying("old")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := report.WriteFile(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half of the n")
		return boom
	})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if content(t, path) != "old" || listing(t, dir) != "out.json" {
		t.Errorf("holds %q, beside it: %s", content(t, path), listing(t, dir))
	}
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir: "it is a folder",
		filepath.Join(dir, "no", "such", "x.json"):   "folder " + filepath.Join(dir, "no", "such") + " does not exist",
		filepath.Join(dir, strings.Repeat("n", 300)): "name too long",
	} {
		if err := report.CheckWritable(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if err := report.WriteFile(path, saying("x")); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}

func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is Linux's")
	}
	if err := report.CheckWritable("/dev/full"); err != nil {
		t.Fatal(err)
	}
	err := report.WriteFile("/dev/full", saying("x"))
	if err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("error %v", err)
	}
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
		t.Fatalf("/dev/full was replaced: %v, %v", info, err)
	}
}

func TestWriteFileFollowsLinksAndKeepsRights(t *testing.T) {
	dir := t.TempDir()
	original, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(original, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(original, link); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteFile(link, saying("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
	if content(t, original) != "new" {
		t.Errorf("the linked file holds %q", content(t, original))
	}
	if info, err := os.Stat(original); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("rights %v, %v", info.Mode(), err)
	}
}
