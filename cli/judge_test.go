package cli_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/rig/rigtest"
	"oversell/trial"
)

// example is the path of the lock in Python.
func example(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../adapters/examples/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// judge runs the program, and returns its output and its exit status.
func judge(t *testing.T, args ...string) (text string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(), args...)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return string(out), failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// judged puts a lock on trial, and returns its verdict besides.
func judged(t *testing.T, args ...string) (v trial.Report, text string, status int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "verdict.json")
	text, status = judge(t, append([]string{"judge", "-q", "--json", file}, args...)...)
	written, err := os.ReadFile(file) //nolint:gosec // our own file
	if err == nil {
		err = json.Unmarshal(written, &v)
	}
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, written, text)
	}
	return v, text, status
}

// TestJudge puts the example on trial, in make nightly also under load.
func TestJudge(t *testing.T) {
	t.Parallel()
	hazards, claimed, loads := "pause", "1 as claimed, 0 contradict a claim", 0
	if rigtest.IsNightly() {
		hazards, claimed, loads = "race,pause,crash,load", "3 as claimed, 0 contradict a claim", 2
	}
	got, text, status := judged(t, "--hazard", hazards, "--", "python3", example(t))
	if status != 0 || !strings.Contains(text, claimed) {
		t.Fatalf("status %d:\n%s", status, text)
	}
	if len(got.Contract) < 10 || len(got.Rows) != 1 {
		t.Fatalf("%+v", got)
	}
	if len(got.Load) != loads || loads > 0 && (got.Load[0].Strategy != "adapter" || got.Load[0].Verdict != "holds" || got.Load[0].Sold == 0) {
		t.Errorf("load: %+v", got.Load)
	}
	pause := got.Rows[0].Summaries["pause"]
	if pause.Verdict != "broken" || !strings.HasPrefix(pause.Command, "oversell judge --hazard pause -- ") {
		t.Errorf("pause: %+v", pause)
	}
}

// TestHazardsOnTrial injects the hazards that apply only to a lock on trial: into a right lock, and into a lock
// that each of them breaks. TestEveryHazard of lab/experiment injects all others.
func TestHazardsOnTrial(t *testing.T) {
	t.Parallel()
	lock, err := filepath.Abs("testdata/grade/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	const base = "lease,lease_per_request"
	for _, test := range []struct{ hazards, features, flaws, verdicts string }{
		{"crash-between,late-release,late-answer", base + ",loss_notice", "", "safe"},
		{"partition,minority-loss,majority-loss", base + ",majority", "", "safe"},
		{"crash-between,late-release,late-answer", base + ",loss_notice", "setnx-expire,get-then-del,lease-from-answer", "stalled,broken,broken"},
		{"crash", base + ",renewal,wake", "waits-for-message", "stalled"},
		{"late-answer", base + ",loss_notice,majority", "lease-from-answer", "broken"}, // half a second to each server
		{"client-clocks", base, "", "safe"},
		{"client-clocks", base, "client-time", "broken"},
		{"client-clocks", base + ",fence", "fence-from-clock", "broken"},
		{"late-acquire,missed-release", base + ",renewal,wake", "", "safe"},
		{"late-acquire", base, "deletes-expired", "broken"},
		{"missed-release", base + ",renewal,wake", "forgets-message", "stalled"},
		{"dead-waiter", base + ",renewal,fairness", "", "safe"},
		{"dead-waiter", base + ",renewal,fairness", "keeps-the-dead", "stalled"},
		{"waiter-reset,release-reply", base + ",renewal,wake", "", "safe"},
		{"waiter-reset,release-reply", base + ",renewal,wake", "keeps-after-errors", "stalled"},
		{"crash-between,late-release,late-answer", base + ",loss_notice,hashed", "", "safe"},
		{"crash-between,late-release,late-answer", base + ",loss_notice,hashed", "setnx-expire,get-then-del,lease-from-answer", "stalled,broken,broken"},
	} {
		t.Run(test.hazards+" "+test.features+" "+test.flaws, func(t *testing.T) {
			if strings.Contains(test.features, "hashed") || test.flaws == "keeps-after-errors" || test.flaws == "" && !strings.Contains(test.hazards, "crash-between") && !strings.Contains(test.hazards, "partition") {
				rigtest.Nightly(t, "TestHazardsOnTrial, TestCommands of ./cli, ./lab/rig")
			}
			t.Parallel()
			got, text, _ := judged(t, "--hazard", test.hazards, "--", "python3", lock, test.features, test.flaws)
			if len(got.Rows) != 1 {
				t.Fatalf("%+v\n%s", got, text)
			}
			verdicts := strings.Split(test.verdicts, ",") // one for all hazards, or one for each
			for i, hazard := range strings.Split(test.hazards, ",") {
				want := verdicts[min(i, len(verdicts)-1)]
				if seen := got.Rows[0].Summaries[api.Hazard(hazard)].Verdict; string(seen) != want {
					t.Errorf("%s: %q, want %q:\n%s", hazard, seen, want, text)
				}
			}
		})
	}
}

// TestJudgeTopologies puts our lock on trial behind Sentinel and in a cluster, where the lab must find its keys by
// itself. A lock that cannot read such an address is told so before its contract.
func TestJudgeTopologies(t *testing.T) {
	t.Parallel()
	text, status := judge(t, "judge", "-q", "--hazard", "split-brain", "--", "python3", example(t))
	if status != 2 || !strings.Contains(text, "hazard split-brain: the lock could not be acquired on a Redis sentinel") || strings.Contains(text, "The contract") {
		t.Errorf("a lock without Sentinel: status %d:\n%s", status, text)
	}
	rigtest.Nightly(t, "TestReshard of ./lab/fault")
	const hazards = "failover-sentinel,split-brain,failover-cluster,resharding"
	got, text, _ := judged(t, "--hazard", hazards, "--", built(), "adapter", "redis-uuid")
	for hazard, want := range map[api.Hazard]string{"failover-sentinel": "broken", "split-brain": "broken", "failover-cluster": "broken", "resharding": "safe"} {
		if s := got.Rows[0].Summaries[hazard]; string(s.Verdict) != want || strings.Contains(s.Why.EN, "The lease of A ended") {
			t.Errorf("%s: %+v, want %s:\n%s", hazard, s, want, text)
		}
	}
}

// TestContractFindsFlaws checks that a contract names flaws. TestJudgeFlaws has more of them.
func TestContractFindsFlaws(t *testing.T) {
	t.Parallel()
	lock, err := filepath.Abs("testdata/grade/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]string{"process-token": "same-process", "stripes": "names", "deletes-by-pattern": "names", "fence-expires": "fence"}
	for flaw, check := range checks {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			text, status := judge(t, "contract", "-q", "--", "python3", lock, "lease,lease_per_request,loss_notice,fence", flaw)
			if status != 1 || !strings.Contains(text, "✗ "+check) {
				t.Errorf("status %d:\n%s", status, text)
			}
		})
	}
}

// TestJudgeFlaws puts each flawed lock on trial, with plain and with hashed names: a check or a hazard that the judge
// finds to fail must be one that names the flaw. TestHazardsOnTrial and TestGrade judge locks without a flaw.
func TestJudgeFlaws(t *testing.T) {
	rigtest.Nightly(t, "TestHazardsOnTrial, TestContractFindsFlaws of ./cli")
	t.Parallel()
	lock, err := filepath.Abs("testdata/grade/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	const base = "lease,lease_per_request"
	flawed := append(wrongLocks(),
		submission{"", base, "client-time", []string{"client-clocks"}},
		submission{"", base + ",renewal,fairness", "keeps-the-dead", []string{"dead-waiter"}},
		submission{"", base, "deletes-expired", []string{"late-acquire"}},
		submission{"", base, "stripes", []string{"names"}},
		submission{"", base + ",renewal,loss_notice,majority", "renews-on-one", []string{"cutoff"}},
		submission{"", base + ",loss_notice,fence", "early-fence", []string{"fence"}},
		submission{"", base + ",renewal,fairness", "barging", []string{"order"}},
		submission{"", base + ",renewal,wake", "listens-late", []string{"release"}},
		submission{"", base + ",renewal,wake", "forgets-message", []string{"missed-release", "release"}},
		submission{"", base + ",loss_notice,fence", "fence-from-clock", []string{"client-clocks"}},
		submission{"", base, "process-token", []string{"same-process"}},
		submission{"", base, "cuts-lease", []string{"lease-length"}},
		submission{"", base, "ignores-case", []string{"names"}},
		submission{"", base, "cuts-names", []string{"names"}},
		submission{"", base + ",renewal", "stops-renewing", []string{"renewal"}},
		submission{"", base + ",renewal,wake", "sleeps-through", []string{"waiter-reset"}},
		submission{"", base + ",renewal", "release-keeps-renewing", []string{"release-reply"}})
	for _, s := range flawed {
		for _, hashed := range []string{"", ",hashed"} {
			t.Run(s.flaw+hashed, func(t *testing.T) {
				t.Parallel()
				hazards := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { _, is := experiment.Of(api.Hazard(name)); return !is })
				if len(hazards) == 0 {
					hazards = []string{"race"}
				}
				got, text, status := judged(t, "--hazard", strings.Join(hazards, ","), "--", "python3", lock, s.features+hashed, s.flaw)
				var found []string
				for _, c := range got.Contract {
					if c.Failed != "" {
						found = append(found, c.Check)
					}
				}
				for _, row := range got.Rows {
					for hazard, summary := range row.Summaries {
						if summary.Verdict.Failed() {
							found = append(found, string(hazard))
						}
					}
				}
				names := s.names
				if slices.Contains(hazards, "replica-race") || s.flaw == "anybody-re-enters" {
					names = append(names, "time-out", "release") // with a second holder, which these checks see first
				}
				if !slices.ContainsFunc(found, func(name string) bool { return slices.Contains(names, name) }) {
					t.Errorf("status %d, found %v, want one of %v:\n%s", status, found, names, text)
				}
				t.Logf("%s%s: %v", s.flaw, hashed, found)
			})
		}
	}
}

// TestContract checks one of our locks as an adapter. TestJudgeOurs puts more of them on trial.
func TestContract(t *testing.T) {
	t.Parallel()
	if text, status := judge(t, "contract", "-q", "--", built(), "adapter", "redis-uuid"); status != 0 || strings.Count(text, "✓") < 10 {
		t.Errorf("status %d:\n%s", status, text)
	}
}

// TestJudgeWrongLock checks that a wrong lock gets a verdict on the claim that it breaks, and no
// hazard afterwards. TestLibraries has a lock that grants to everybody.
func TestJudgeWrongLock(t *testing.T) {
	rigtest.Nightly(t, "TestLibraries of ./cli")
	t.Parallel()
	text, err := os.ReadFile(example(t))
	if err != nil {
		t.Fatal(err)
	}
	// A release without effect:
	wrong := strings.Replace(string(text), `return redis("EVAL", RELEASE, 1, self.name, self.token) == ":1" and not self.lost`, "return True", 1)
	if wrong == string(text) {
		t.Fatal("lock.py has another release")
	}
	file := filepath.Join(t.TempDir(), "wrong.py")
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	out, status := judge(t, "judge", "-q", "--", "python3", file)
	if status != 1 || !strings.Contains(out, "the key must be free at once: lock stock:") || !strings.Contains(out, "No hazard was injected") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// TestJudgeUsage checks the errors that need no lab.
func TestJudgeUsage(t *testing.T) {
	t.Parallel()
	hello := `echo '{"hello":1,"library":"x","backends":["redis"],"protects":["paus"]}'; cat`
	for want, args := range map[string][]string{
		"the command of the adapter is missing":       {"judge"},
		"write -- before the command of the adapter":  {"judge", "python3", "lock.py"},
		`did you mean "pause"?`:                       {"judge", "--hazard", "paus", "--", "true"},
		"--plan: add --chaos":                         {"judge", "--plan", "A sells", "--", "true"},
		"--hazard: leave it out with --chaos":         {"judge", "--chaos", "--hazard", "pause", "--", "true"},
		"--seeds 0":                                   {"judge", "--seeds", "0", "--", "true"},
		"the program has ended (exit status 0)":       {"judge", "--", "true"},
		`hazard "paus" does not exist`:                {"judge", "--", hello},
		"the hazard session-expiry does not apply":    {"judge", "--hazard", "session-expiry", "--", `echo '{"hello":1,"library":"x","backends":["redis"]}'; cat`},
		`line 1 of the program: "hello"`:              {"contract", "--", "echo hello; cat"},
		`lock "rediss" does not exist; did you mean`:  {"adapter", "rediss"},
		"LEASE_MS \"soon\": must be a number of mill": {"adapter", "redis"},
	} {
		cmd := exec.CommandContext(t.Context(), built(), args...)
		if strings.HasPrefix(want, "LEASE_MS") {
			cmd.Env = append(os.Environ(), "LEASE_MS=soon")
		}
		out, err := cmd.CombinedOutput()
		if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s\nwant status 2 and %s", args, err, out, want)
		}
	}
}

// TestContractMisbehaving checks that a program that breaks the protocol gets a clear sentence, and
// that no process of it is left. TestBadAnswers in trial/adapter has the other programs, without a lab.
func TestContractMisbehaving(t *testing.T) {
	rigtest.Nightly(t, "TestBadAnswers of ./trial/adapter")
	t.Parallel()
	const hello = `echo '{"hello":1,"library":"x","version":"1","language":"sh","backends":["redis"]}';`
	for name, c := range map[string]struct{ script, want string }{
		"no answer":             {`cat >/dev/null; sleep 31415`, "no answer"},
		"a child that lives on": {`sleep 31415 & read a; exit 8`, "exit status 8"},
	} {
		t.Run(name, func(t *testing.T) {
			marker := "marker-" + rand.Text()
			out, status := judge(t, "contract", "-q", "--", hello+c.script+" # "+marker)
			if status != 1 || !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) {
				t.Errorf("status %d:\n%s\nwant %s", status, out, c.want)
			}
			for _, p := range []string{marker, "sleep\x0031415"} {
				if left := processesWith(t, p); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			}
		})
	}
}

// processesWith returns the command lines of running processes that contain text.
func processesWith(t *testing.T, text string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: no processes", err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file) //nolint:gosec // a process may have ended
		if err == nil && strings.Contains(string(line), text) {
			found = append(found, string(line))
		}
	}
	return found
}
