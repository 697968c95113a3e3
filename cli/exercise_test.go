package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oversell/lab/rig"
)

// TestExerciseCommand plays one exercise in both languages, in a small lab and in a running one.
func TestExerciseCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lab.json")
	must(t, testLab.Addresses().WriteFile(file))
	for _, c := range []struct {
		lang, want string
		args       []string
	}{
		{"C", "# 1. INCR of a text fails.", nil},
		{"zh_CN.UTF-8", "# 1. 给字符串自增会出错。", []string{"--lab", file}},
	} {
		cmd := exec.CommandContext(t.Context(), built(), append([]string{"exercise", "redis-multi"}, c.args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL="+c.lang)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), c.want) || !strings.Contains(string(out), "A redis> MULTI\n  OK\n") {
			t.Errorf("%s: %v\n%s", c.lang, err, out)
		}
	}
}

func TestExerciseAndClientMessages(t *testing.T) {
	t.Parallel()
	binary := built()
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"exercise"}, 0, "\nredis-no-expiry "},
		{[]string{"exercise", "isolaton"}, 2, `exercise "isolaton" does not exist; did you mean "isolation"?`},
		{[]string{"exercise", "index", "znodes"}, 2, `unexpected argument "znodes"`},
		{[]string{"exercise", "index", "--lab", "running"}, 1, "no lab is running: start one in another terminal with " + binary + " lab"},
		{[]string{"mysql"}, 1, "no lab is running: start one in another terminal with " + binary + " lab"},
		{[]string{"etcdctl", "--lab"}, 2, "--lab: name the file"},
		{[]string{"zkcli", "--lab=nothing"}, 1, "nothing: no such file"},
		{[]string{"settings"}, 1, "no lab is running: start one in another terminal with " + binary + " lab"},
		{[]string{"redis-cli", "--help"}, 0, "Usage:\n  " + binary + " redis-cli"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, test.args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir)
		out, err := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != test.status || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %v, exit status %d, %s", test.args, err, status, out)
		}
	}
}

// TestMissingClients checks the message when a client is not installed.
func TestMissingClients(t *testing.T) {
	t.Parallel()
	binary, file := built(), filepath.Join(t.TempDir(), "lab.json")
	if err := testLab.Addresses().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "lab.json")
	if err := (rig.Addresses{}).WriteFile(empty); err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]string{
		"mysql":     "mysql --host=127.0.0.1 --port=",
		"redis-cli": "redis-cli -h 127.0.0.1 -p ",
		"etcdctl":   "etcdctl --endpoints=127.0.0.1:",
	} {
		out := oversell(t, binary, client, "--lab", file)
		if !strings.Contains(out, "is not installed (Debian: apt install ") || !strings.Contains(out, want) {
			t.Errorf("%s: %s", client, out)
		}
	}
	for _, client := range []string{"mysql", "redis-cli", "zkcli", "etcdctl", "settings"} {
		if out := oversell(t, binary, client, "--lab", empty); !strings.Contains(out, "the lab has no ") {
			t.Errorf("%s: %s", client, out)
		}
	}
}

// oversell runs the program with an empty PATH, which must fail, and returns its output.
func oversell(t *testing.T, binary string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = []string{"PATH=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%v: no error", args)
	}
	return string(out)
}
