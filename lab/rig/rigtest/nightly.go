package rigtest

import (
	"os"
	"testing"
)

// Nightly leaves a test to `make nightly`, which sets OVERSELL_NIGHTLY. covered names the tests that
// check the same behaviour in `make test`, in fewer cases; a test of the imports looks whether they exist.
func Nightly(tb testing.TB, covered string) {
	tb.Helper()
	if !IsNightly() {
		tb.Skip("make nightly runs it; make test has " + covered)
	}
}

// IsNightly reports whether a test must run all its cases, instead of those that `make test` has time for.
func IsNightly() bool { return os.Getenv("OVERSELL_NIGHTLY") != "" }
