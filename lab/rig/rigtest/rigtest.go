// Package rigtest starts rigs in tests.
//
// A package that starts a rig begins its tests with
//
//	func TestMain(m *testing.M) { rigtest.Main(m) }
//
// or, to start the servers once for all its tests,
//
//	var servers *rig.Rig
//
//	func TestMain(m *testing.M) {
//		rigtest.MainWith(m, rigtest.Guest(rig.Config{MySQL: true, Redis: 1}), func(r *rig.Rig) { servers = r })
//	}
//
// Guest lets a rig use the MySQL and the ZooKeeper of the lab that `make test` has started for all
// packages. A rig whose tests stop these servers must not be a guest. Without `make test`, each
// package starts all its servers.
package rigtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"oversell/lab/rig"
)

// Main runs the tests and exits. If a rig has started the test binary as its reaper, Main does the
// work of the reaper instead.
func Main(m *testing.M) {
	prepare()
	os.Exit(m.Run())
}

// MainWith starts servers, runs all the tests with them, and exits like Main. It calls use with the
// rig before the first test, and end after the last one. If the servers can't start, the tests fail:
// they are never skipped.
func MainWith(m *testing.M, cfg rig.Config, use func(*rig.Rig), end ...func() error) {
	prepare()
	code := 1
	r, err := rig.Start(context.Background(), withProgram(cfg))
	if err == nil {
		use(r)
		code = m.Run()
		for _, end := range end {
			err = errors.Join(err, end())
		}
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Guest makes a guest of cfg's rig if OVERSELL_LAB names the file with the addresses of a lab.
func Guest(cfg rig.Config) rig.Config {
	path := os.Getenv("OVERSELL_LAB")
	if path == "" {
		return cfg
	}
	host, err := rig.ReadAddresses(path)
	if err != nil {
		panic(err) // in a test binary: make test has set a wrong variable
	}
	cfg.Host = &host
	return cfg
}

// withProgram sets the program of the replicas to OVERSELL_PROGRAM, which `make test` has built. By
// default, each rig builds it.
func withProgram(cfg rig.Config) rig.Config {
	cfg.Binary = cmp.Or(cfg.Binary, os.Getenv("OVERSELL_PROGRAM"))
	return cfg
}

// Program returns the path of the program oversell. It builds the program if `make test` has not.
func Program(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("OVERSELL_PROGRAM"); path != "" {
		return path
	}
	path := filepath.Join(tb.TempDir(), "oversell")
	if out, err := rig.BuildCommand(path).CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// NeedsPair skips a test if its pair or cluster of databases is missing: MariaDB's packages conflict with
// MySQL's. With CI set, NeedsPair skips no test, so the start of the test's rig fails. tools/test.sh finds
// skipped tests by the text of rig.ErrMissing, and lists them.
func NeedsPair(tb testing.TB, database rig.Database) {
	tb.Helper()
	err := rig.Installed(rig.Config{MySQL: true, Database: database})
	if errors.Is(err, rig.ErrMissing) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
}

func prepare() {
	// By default, a race-detector build sleeps 1 s at its exit, and Close waits for the reaper.
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // of a valid name
	if len(os.Args) != 3 || os.Args[1] != "reap" {
		return
	}
	if err := rig.Reap(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Start starts servers for one test, and closes them at its end. NeedsPair may skip the test of a pair or cluster.
func Start(tb testing.TB, cfg rig.Config) *rig.Rig {
	tb.Helper()
	if cfg.Database != rig.OneServer {
		NeedsPair(tb, cfg.Database)
	}
	r, err := rig.Start(tb.Context(), withProgram(cfg))
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

// Chromium returns the path of a Chromium. It prefers the one without windows, which needs less of the
// processor: all of its processes draw only the page.
func Chromium(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{
		// Not its command: this is a script, whose end would leave the browser running.
		"/usr/lib/chromium/chromium-headless-shell",
		"headless_shell", "chromium", "chromium-browser", "google-chrome",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	tb.Fatal("the tests of the page need Chromium or Chrome")
	return ""
}
