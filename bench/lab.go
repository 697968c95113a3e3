package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"oversell/api"
)

// lab is a running `oversell lab` and the addresses of its servers.
type lab struct {
	Target    string   `json:"target"`
	Replicas  []string `json:"replicas"`
	MySQL     string   `json:"mysql"`
	Redis     []string `json:"redis"`
	ZooKeeper []string `json:"zookeeper"`
	Etcd      []string `json:"etcd"`
	Token     string   `json:"token"`

	binary, dir string
	process     *exec.Cmd
}

func startLab(ctx context.Context, binary string) (lab, error) {
	l := lab{binary: binary}
	dir, err := os.MkdirTemp("", "oversell-bench-*")
	if err != nil {
		return l, err
	}
	l.dir = dir
	file := filepath.Join(dir, "lab.json")
	l.process = exec.CommandContext(ctx, binary, "lab", "--open", "--json", file)
	l.process.Cancel = func() error { return l.process.Process.Signal(syscall.SIGTERM) }
	l.process.Stderr = os.Stderr
	if err := l.process.Start(); err != nil {
		return l, err
	}
	ended := make(chan error, 1)
	go func() { ended <- l.process.Wait() }()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if readJSON(file, &l) == nil {
			return l, nil
		}
		select {
		case err := <-ended:
			return l, fmt.Errorf("the lab ended: %w", err)
		default:
		}
	}
	l.close()
	return l, errors.New("the lab was not ready within a minute")
}

func (l lab) close() {
	_ = l.process.Process.Signal(syscall.SIGTERM)
	for l.process.ProcessState == nil {
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(l.dir)
}

// runResult has the fields of `oversell run --json` that the benchmark needs.
type runResult struct {
	PerSecond float64 `json:"throughput_per_s"`
	P99       float64 `json:"p99_ms"`
	Lost      int     `json:"lost_updates"`
	Errors    int     `json:"errors"`
	Sold      int     `json:"sold"`
}

// run sells through nginx with `oversell run`. It returns the figures, and also an error if a
// request failed.
func (l lab) run(ctx context.Context, strategy string, load volume, flags ...string) (figures, error) {
	file := filepath.Join(l.dir, "run.json")
	_ = os.Remove(file)
	c := exec.CommandContext(ctx, l.binary, "run", strategy, "--quiet", "--target", l.Target, "--json", file,
		"--clients", strconv.Itoa(load.clients), "--loops", strconv.Itoa(load.loops), "--stock", strconv.Itoa(load.clients*load.loops))
	c.Args = append(c.Args, flags...)
	c.Env = append(os.Environ(), "LAB_TOKEN="+l.Token) // other users can read a command line
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	var results []runResult
	if bad := readJSON(file, &results); bad != nil || len(results) != 1 {
		return figures{}, errors.Join(err, bad, fmt.Errorf("%d results, want 1", len(results)))
	}
	return results[0].figures(), err
}

func (r runResult) figures() figures {
	return figures{perSecond: r.PerSecond, p99: r.P99, lost: r.Lost, failed: r.Errors, sold: r.Sold}
}

// api returns a client of a replica, or, with l.Target, of the page.
func (l lab) api(base string) api.Client {
	return api.Client{Base: base, Token: l.Token, HTTP: http.DefaultClient}
}

var residentMemory = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)`)

// memory prints how much memory each replica uses at the end of all measurements.
func (l lab) memory(ctx context.Context, out io.Writer, wanted int) error {
	for i, replica := range l.Replicas {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, replica+"/metrics", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		found := residentMemory.FindSubmatch(text)
		if err != nil || found == nil {
			return fmt.Errorf("%s/metrics has no resident memory: %w", replica, err)
		}
		bytes, _ := strconv.ParseFloat(string(found[1]), 64)
		fmt.Fprintf(out, "Replica %d: %.0f MB resident (wanted: under %d).\n", i+1, bytes/1e6, wanted)
	}
	fmt.Fprintln(out)
	return nil
}

// versions returns the versions of MySQL and Redis.
func (l lab) versions(ctx context.Context) string {
	versions := "MySQL unknown"
	if db, err := open(l.MySQL); err == nil {
		defer func() { _ = db.Close() }()
		var version string
		if db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version) == nil {
			versions = version
		}
	}
	_ = info(ctx, l.Redis[:1], "server", regexp.MustCompile(`(redis_version):(\S+)`), func(_, version string) { versions += ", Redis " + version })
	return versions
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
