package rig_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

func TestRunning(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	none := func(when string) {
		t.Helper()
		if addrs, err := rig.Running(); !errors.Is(err, rig.ErrNoLab) {
			t.Errorf("%s: %+v, %v", when, addrs, err)
		}
	}
	none("at first")

	// A folder that a killed lab has left is not that of a running lab.
	dead := filepath.Join(tmp, "oversell-lab-1-dead")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (rig.Addresses{Token: "dead"}).WriteFile(filepath.Join(dead, "addresses.json")); err != nil {
		t.Fatal(err)
	}
	none("with a folder without groups")
	if err := os.WriteFile(filepath.Join(dead, "groups"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	none("with a dead lab")

	older := rigtest.Start(t, rig.Config{Redis: 1})
	none("before the announcement")
	lab := older
	for range 2 {
		if err := lab.Announce(); err != nil {
			t.Fatal(err)
		}
		if addrs, err := rig.Running(); err != nil || !reflect.DeepEqual(addrs, lab.Addresses()) {
			t.Errorf("%+v, %v, want %+v", addrs, err, lab.Addresses())
		}
		if info, err := os.Stat(filepath.Join(lab.Dir(), "addresses.json")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file: %v, %v", info, err)
		}
		if lab == older {
			lab = rigtest.Start(t, rig.Config{Redis: 1})
		}
	}
	if err := lab.Close(); err != nil {
		t.Fatal(err)
	}
	if addrs, err := rig.Running(); err != nil || !reflect.DeepEqual(addrs, older.Addresses()) {
		t.Errorf("after the end of the newest: %+v, %v", addrs, err)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	none("after the end of all")
}

func TestReadAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lab.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "x", "/dev/zero"} {
		if _, err := rig.ReadAddresses(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
