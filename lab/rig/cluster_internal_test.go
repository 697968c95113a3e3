package rig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	for want, cfg := range map[string]Config{
		`no database "oracle"`: {MySQL: true, Database: "oracle"},
		"needs Config.MySQL":   {Database: Galera},
		"ensemble of 10":       {Zookeeper: 10},
		"needs Redis":          {RedisReplica: true},
		"needs Config.Proxied": {Redis: 1, Delay: time.Second},
	} {
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	var single Rig
	if err := single.AwaitEven(t.Context()); err != nil {
		t.Errorf("a rig without a pair is not even: %v", err)
	}
	if _, err := single.HoldReplication(t.Context()); err == nil {
		t.Error("a rig without a pair has a replication")
	}
}

// TestFindProgram checks that a program may be given by a pattern, and that the error for a missing one names it.
func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	pattern := filepath.Join(dir, "lib*", "libgalera_smm.so")
	_, err := findProgram("libgalera_smm.so", pattern)
	if want := `rig: libgalera_smm.so: not installed: run "make servers"`; !errors.Is(err, ErrMissing) || err.Error() != want {
		t.Errorf("nothing there: %v, want %s", err, want)
	}
	library := filepath.Join(dir, "lib64", "libgalera_smm.so")
	if err := os.Mkdir(filepath.Dir(library), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := findProgram("libgalera_smm.so", "/nowhere/*", pattern); got != library || err != nil {
		t.Errorf("found %q, %v, want %q", got, err, library)
	}
}
