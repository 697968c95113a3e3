package cli_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestTooFewOpenFiles: a low limit must be named, and not end in the log of a server.
func TestTooFewOpenFiles(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 60; exec "$0" lab`, built()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "a process may open 60 files, and some servers need 200: raise the limit with ulimit -n 200") {
		t.Errorf("a lab with 60 open files: %v, %s", err, out)
	}
}

// TestLabCommand starts `oversell lab`, and ends it by Ctrl-C, in make nightly also by kill -9.
func TestLabCommand(t *testing.T) {
	t.Parallel()
	binary := built()
	ends := map[string]syscall.Signal{"ctrl-c": syscall.SIGINT}
	if rigtest.IsNightly() {
		ends["kill -9"] = syscall.SIGKILL
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			tmp, file := t.TempDir(), filepath.Join(t.TempDir(), "lab.json")
			traces := filepath.Join(t.TempDir(), "traces.jsonl")
			if err := os.WriteFile(file, []byte("of an earlier lab"), 0o600); err != nil {
				t.Fatal(err)
			}
			files := map[string]*os.File{}
			for _, name := range []string{"out", "err"} {
				file, err := os.Create(filepath.Join(t.TempDir(), name))
				if err != nil {
					t.Fatal(err)
				}
				files[name] = file
			}
			printed := func() string { return read(t, files["out"].Name()) }
			logged := func() string { return read(t, files["err"].Name()) }
			cmd := exec.CommandContext(t.Context(), binary, "lab", "--json", file, "--replicas", "2", "--token", "pass-word", "--share", "127.0.0.1:0", "--metrics", "--traces", traces, "--lease", "30s")
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			cmd.Stdout, cmd.Stderr = files["out"], files["err"]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var addrs rig.Addresses
			rigtest.Eventually(t, "the file with the addresses", func() (bool, string) {
				text, _ := os.ReadFile(file)
				return json.Unmarshal(text, &addrs) == nil, string(text)
			})
			if len(addrs.Replicas) != 2 || len(addrs.Redis) != 5 || len(addrs.Zookeeper) != 1 || len(addrs.Etcd) != 1 || addrs.MySQL == "" || addrs.Token != "pass-word" {
				t.Errorf("addresses %+v", addrs)
			}
			if r := ask(t, http.MethodGet, addrs.Target, "/readyz"); r.HTTP != http.StatusOK {
				t.Errorf("readyz: %+v", r)
			}
			if r := ask(t, http.MethodGet, addrs.Target, "/"); r.HTTP != http.StatusOK {
				t.Errorf("the page: %+v", r)
			}
			rigtest.Eventually(t, "the commands to try", func() (bool, string) { return strings.Contains(printed(), "Ctrl-C ends the lab"), printed() })
			tryClients(t, binary, tmp, printed())
			if link := addrs.Prometheus + "/consoles/oversell.html"; addrs.Prometheus == "" || !strings.Contains(printed(), link) {
				t.Errorf("the page of Prometheus is missing:\n%s", printed())
			}
			killReplica(t, addrs, logged)
			checkLease(t, addrs)
			page(t, addrs.Target+"/check/lock?strategy=redis") // after the kill, which loses spans
			rigtest.Eventually(t, "the link for phones", func() (bool, string) { return phoneLink.MatchString(printed()), printed() })
			tryPhones(t, phoneLink.FindString(printed()))
			if err := cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); end == syscall.SIGINT && err != nil {
				t.Errorf("the command failed: %v\n%s", err, logged())
			}
			if end == syscall.SIGINT && !strings.Contains(printed(), "curl '"+addrs.Target+"/check/lock?strategy=redis'") {
				t.Errorf("the commands to try are missing:\n%s", printed())
			}
			if end == syscall.SIGINT { // the replicas have sent their last spans
				checkTraces(t, traces)
			}
			if link := addrs.Target + "/#token=pass-word"; end == syscall.SIGINT && !strings.Contains(printed(), link) {
				t.Errorf("the link %s is missing:\n%s", link, printed())
			}
			rigtest.Eventually(t, "nothing is left", func() (bool, string) {
				files, _ := os.ReadDir(tmp)
				for _, address := range append(addrs.Replicas, addrs.Target, addrs.Prometheus) {
					u, err := url.Parse(address)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := send(t.Context(), http.MethodGet, "http://"+u.Host, "/healthz"); err == nil {
						return false, address + " answers"
					}
				}
				return len(files) == 0, "files"
			})
		})
	}
}

// killReplica kills the second replica by the process id that the lab has printed. The lab must start it again.
func killReplica(t *testing.T, addrs rig.Addresses, logged func() string) {
	t.Helper()
	ids := regexp.MustCompile(`replica-2 +ready on .* pid (\d+)`).FindStringSubmatch(logged())
	if ids == nil {
		t.Fatalf("no process id of replica-2 in:\n%s", logged())
	}
	pid, _ := strconv.Atoi(ids[1]) // of a match
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := "replica-2 (pid " + ids[1] + ") died (signal: killed); started again as pid "
	rigtest.Eventually(t, "the replica starts again", func() (bool, string) { return strings.Contains(logged(), again), logged() })
	if r := ask(t, http.MethodGet, addrs.Replicas[1], "/healthz"); r.HTTP != http.StatusOK {
		t.Errorf("the replica that was started again: %+v", r)
	}
}

// checkLease checks that a lock has the lease of the flag --lease.
func checkLease(t *testing.T, addrs rig.Addresses) {
	t.Helper()
	options, err := redis.ParseURL(addrs.Redis[0])
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	if r := ask(t, http.MethodGet, addrs.Replicas[0], "/test/lock?owner=A&name=lease"); r.HTTP != http.StatusOK {
		t.Errorf("lock: %+v", r)
	}
	if left, err := client.PTTL(t.Context(), "redis:lease").Result(); err != nil || left <= 10*time.Second {
		t.Errorf("the lock ends in %v, want 30 s: %v", left, err)
	}
}

var phoneLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/dash/vote`)

// tryPhones checks that a phone sees the page for votes, and can start nothing.
func tryPhones(t *testing.T, link string) {
	t.Helper()
	if r := ask(t, http.MethodGet, strings.TrimSuffix(link, "/dash/vote"), "/dash/vote"); r.HTTP != http.StatusOK {
		t.Errorf("the page of a phone: %+v", r)
	}
	if r := ask(t, http.MethodPost, strings.TrimSuffix(link, "/dash/vote"), "/dash/run/start"); r.HTTP != http.StatusForbidden {
		t.Errorf("a phone starts a run: %+v", r)
	}
}

// tryClients runs the clients that the lab has printed, and an exercise. They find the lab in tmp. etcdctl may be
// missing on this machine: then its command line is printed.
func tryClients(t *testing.T, binary, tmp, printed string) {
	t.Helper()
	for _, test := range []struct {
		printed string
		args    []string
		want    string
	}{
		{"mysql", []string{"mysql", "-N", "-e", "SELECT DATABASE()"}, "oversell"},
		{"redis-cli", []string{"redis-cli", "ECHO", "oversell"}, "oversell"},
		{"zkcli", []string{"zkcli", "ls", "/"}, "zookeeper]"},
		{"etcdctl get --prefix /", []string{"etcdctl"}, "etcdctl"},
		{"", []string{"exercise", "zk-version", "--lab", "running"}, "version No is not valid"},
	} {
		if test.printed != "" && !strings.Contains(printed, "\n  "+binary+" "+test.printed+"\n") {
			t.Errorf("no command %s in:\n%s", test.printed, printed)
		}
		cmd := exec.CommandContext(t.Context(), binary, test.args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %v, %s", test.args, err, out)
		}
	}
}
