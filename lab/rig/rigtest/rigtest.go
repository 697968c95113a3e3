// Package rigtest starts rigs in tests.
//
// A package that starts one begins its tests with
//
//	func TestMain(m *testing.M) { rigtest.Main(m) }
//
// or, to start the servers once for all its tests,
//
//	var servers *rig.Rig
//
//	func TestMain(m *testing.M) {
//		rigtest.MainWith(m, rig.Config{Redis: 1}, func(r *rig.Rig) { servers = r })
//	}
package rigtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"oversell/lab/rig"
)

// Main runs the tests, or, in the copy of the test binary that a rig starts as its
// reaper, cleans up after them. It does not return.
func Main(m *testing.M) {
	reapIfAsked()
	hurryRaces()
	os.Exit(m.Run())
}

// MainWith is Main with servers that run during all the tests. It hands them to use
// before the first one. When they can't start, the tests fail: they are never skipped.
func MainWith(m *testing.M, cfg rig.Config, use func(*rig.Rig)) {
	reapIfAsked()
	hurryRaces()
	code, err := runWith(m, cfg, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runWith(m *testing.M, cfg rig.Config, use func(*rig.Rig)) (code int, err error) {
	r, err := rig.Start(context.Background(), cfg)
	if err != nil {
		return 1, err
	}
	use(r)
	code = m.Run()
	return code, r.Close()
}

// hurryRaces keeps children with the race detector from sleeping a second at their exit.
// The reaper is one: each Close would wait for it.
func hurryRaces() {
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // of a valid name
}

// reapIfAsked is `oversell reap DIR`, for a test binary.
func reapIfAsked() {
	if len(os.Args) != 3 || os.Args[1] != "reap" {
		return
	}
	if err := rig.Reap(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Start starts servers for one test and closes them at its end.
func Start(tb testing.TB, cfg rig.Config) *rig.Rig {
	tb.Helper()
	r, err := rig.Start(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// Build builds the program oversell for a test that runs it by itself, and returns its
// path. A rig with replicas and no Config.Binary does so without being told.
func Build(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "oversell")
	if err := rig.Build(path); err != nil {
		tb.Fatal(err)
	}
	return path
}
