package main

import (
	"bufio"
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
	"strings"
	"syscall"
	"time"
)

// lab is a running `oversell lab`, and where its servers listen.
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
	l.process = exec.CommandContext(ctx, binary, "lab", "--json", file)
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
			return l, fmt.Errorf("lab ended: %w", err)
		default:
		}
	}
	l.close()
	return l, errors.New("lab was not ready within a minute")
}

func (l lab) close() {
	_ = l.process.Process.Signal(syscall.SIGTERM)
	for l.process.ProcessState == nil {
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(l.dir)
}

// run loads the service through nginx.
func (l lab) run(ctx context.Context, strategy string, load volume) (result, error) {
	file := filepath.Join(l.dir, strategy+".json")
	c := exec.CommandContext(ctx, l.binary, "run", strategy, "--quiet", "--target", l.Target, "--json", file,
		"--clients", strconv.Itoa(load.clients), "--loops", strconv.Itoa(load.loops), "--stock", strconv.Itoa(load.clients*load.loops))
	c.Env = append(os.Environ(), "LAB_TOKEN="+l.Token) // everybody can read a command line
	if out, err := c.CombinedOutput(); err != nil {
		return result{}, fmt.Errorf("%w: %s", err, out)
	}
	var results []struct {
		PerSecond float64 `json:"throughput_per_s"`
		P99       float64 `json:"p99_ms"`
		Lost      int     `json:"lost_updates"`
		Errors    int     `json:"errors"`
	}
	if err := readJSON(file, &results); err != nil {
		return result{}, err
	}
	if len(results) != 1 || results[0].Errors > 0 {
		return result{}, fmt.Errorf("one result without errors expected, got %+v", results)
	}
	return result{results[0].PerSecond, results[0].P99, results[0].Lost}, nil
}

// stock puts so many pieces on the shelf, wherever the strategy keeps them.
func (l lab) stock(ctx context.Context, pieces int) error {
	url := fmt.Sprintf("%s/stock/1?count=%d", l.Replicas[0], pieces)
	return l.ask(ctx, http.MethodPut, url, nil)
}

// left is what can still be sold.
func (l lab) left(ctx context.Context, strategy string) (int, error) {
	var item struct {
		Count int `json:"count"`
	}
	err := l.ask(ctx, http.MethodGet, l.Replicas[0]+"/stock/1?strategy="+strategy, &item)
	return item.Count, err
}

func (l lab) ask(ctx context.Context, method, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Lab-Token", l.Token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// memory prints what each replica takes now, after all the load.
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
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			if value, ok := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); ok {
				bytes, _ := strconv.ParseFloat(value, 64)
				fmt.Fprintf(out, "Replica %d: %.0f MB resident (wanted: under %d).\n", i+1, bytes/1e6, wanted)
			}
		}
		_ = answer.Body.Close()
	}
	fmt.Fprintln(out)
	return nil
}

// versions says what the servers are.
func (l lab) versions(ctx context.Context) string {
	said := "MySQL unknown"
	if db, err := open(l.MySQL); err == nil {
		defer func() { _ = db.Close() }()
		var version string
		if db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version) == nil {
			said = version
		}
	}
	clients, err := dial(l.Redis[:1])
	defer hangUp(clients)
	if err == nil {
		text, _ := clients[0].Info(ctx, "server").Result()
		if found := regexp.MustCompile(`redis_version:(\S+)`).FindStringSubmatch(text); found != nil {
			said += ", Redis " + found[1]
		}
	}
	return said
}
