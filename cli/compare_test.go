package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/lab/ratio"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// compare runs `oversell compare` on a lab, and returns its result.
func compare(t *testing.T, at rig.Addresses, args ...string) (r ratio.Result, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ratio.json")
	args = append([]string{"compare", "--target", at.Target, "--token", at.Token, "--json", file}, args...)
	out, err := exec.CommandContext(t.Context(), built(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	written, err := os.ReadFile(file) //nolint:gosec // our own file
	if err == nil {
		err = json.Unmarshal(written, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, string(out)
}

// TestCompare compares a strategy with itself under so much work inside the lock that it must be slower in each of six
// pairs, also on a busy machine.
func TestCompare(t *testing.T) {
	at := testLab.Addresses() // not in parallel: others set the same stock
	r, text := compare(t, at, "redis", "redis?hold=100ms", "--rounds", "6", "--length", "200ms", "--within", "100%", "--limit", "1s", "--clients", "4", "--seed", "3")
	if len(r.Pairs) < 6 || !r.Differs() || r.Ratio.Median < 1.5 || r.Seed != 3 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"redis sells ", " times as fast as redis?hold=100ms", "Seed 3.", "sold/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
}

// TestCompareOthers compares two programs, each in a lab of its own, and two services, and then the files of both.
func TestCompareOthers(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, built())
	if err != nil {
		t.Fatal(err)
	}
	rigtest.Nightly(t, "TestCompare of ./cli")
	t.Parallel()
	at := rigtest.Start(t, rig.FullLab(built(), token)).Addresses()
	folder := t.TempDir()
	few := []string{"--rounds", "6", "--length", "200ms", "--within", "100%", "--limit", "1s", "--clients", "4"}
	for name, args := range map[string][]string{
		"programs": {"compare", built(), relative, "--strategy", "atomic"},
		"services": {"compare", at.Target, at.Replicas[0], "--strategy", "atomic", "--token", token},
	} {
		args = append(append(args, few...), "--json", filepath.Join(folder, name+".json"))
		if out, err := exec.CommandContext(t.Context(), built(), args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "95 % intervals") {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	files := exec.CommandContext(t.Context(), built(), "compare", filepath.Join(folder, "programs.json"), filepath.Join(folder, "services.json"))
	if out, err := files.CombinedOutput(); err != nil || !strings.Contains(string(out), "not measured in pairs") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCompareWithItself makes as many comparisons as OVERSELL_COMPARE says, of a strategy with itself, and with one
// whose work inside the lock takes 8 ms instead of 7, about a tenth of its rate: of 100, at most 5 may show a difference that is none, and at least
// 90 must show the one that is. It needs a quiet machine.
func TestCompareWithItself(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("OVERSELL_COMPARE"))
	if err != nil {
		t.Skip("make compared makes these comparisons, with OVERSELL_COMPARE=100")
	}
	at := rigtest.Start(t, rig.FullLab(built(), "token")).Addresses()
	quick := []string{"--clients", "8", "--length", "300ms", "--within", "10%", "--limit", "1m", "--quiet"}
	const base, slower = "for-update?hold=7ms", "for-update?hold=8ms" // a sleep has whole milliseconds
	for _, test := range []struct {
		other       string
		least, most int
	}{{base, 0, times * 5 / 100}, {slower, times * 90 / 100, times}} {
		found, ratios := 0, []float64{}
		for seed := range times {
			r, _ := compare(t, at, append([]string{base, test.other, "--seed", strconv.Itoa(seed + 1)}, quick...)...)
			if ratios = append(ratios, r.Ratio.Median); r.Differs() {
				found++
			}
		}
		slices.Sort(ratios)
		t.Logf("%s: a difference in %d of %d; the ratios were %.3f to %.3f, their median %.3f", test.other, found, times, ratios[0], ratios[times-1], ratios[times/2])
		if found < test.least || found > test.most {
			t.Errorf("%s: a difference in %d of %d, want %d to %d", test.other, found, times, test.least, test.most)
		}
	}
}
