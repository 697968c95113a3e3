package cli_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oversell/lab/rig/rigtest"
)

// row is a result in the JSON of `oversell run`, with only the fields that the tests read.
type row struct {
	Strategy    string `json:"strategy"`
	Samples     int    `json:"samples"`
	Errors      int    `json:"errors"`
	Sold        int    `json:"sold"`
	SoldOut     int    `json:"sold_out"`
	NotAcquired int    `json:"not_acquired"`
	Remaining   int    `json:"remaining"`
	Lost        int    `json:"lost_updates"`
	Partial     bool   `json:"partial"`
	Verdict     string `json:"verdict"`

	Min     float64 `json:"min_ms"`
	Median  float64 `json:"p50_ms"`
	DelayMS float64 `json:"delay_ms"`
	Fsync   bool    `json:"fsync"`
}

// ran is the result of one call of `oversell run`.
type ran struct {
	status   int // -1 means that a signal ended the program
	out, err string
}

// program prepares a call of `oversell run` without a terminal. The returned function waits until
// the call has ended.
func program(t *testing.T, binary string, args ...string) (*exec.Cmd, func() ran) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "COLUMNS=", "LAB_TOKEN="+token)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	return cmd, func() ran {
		err := cmd.Wait()
		var status *exec.ExitError
		if err != nil && !errors.As(err, &status) {
			t.Fatal(err)
		}
		return ran{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
	}
}

func runProgram(t *testing.T, binary string, args ...string) ran {
	t.Helper()
	cmd, wait := program(t, binary, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return wait()
}

func rows(t *testing.T, text string) []row {
	t.Helper()
	var all []row
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRun(t *testing.T) {
	binary := built()
	tests := map[string]func(*testing.T, string){
		"compares": runCompares, "sells out": runSellsOut, "nothing to sell": runNothingToSell, "JSON on stdout": runJSONOnStdout, "time-outs": runTimesOut,
		"refused": runRefused, "unwritable": runUnwritable,
		"open loop": runOpenLoop, "open loop, interrupted": runOpenLoopInterrupted,
		"interrupted": runInterrupted, "interrupted twice": runInterruptedTwice,
	}
	if rigtest.IsNightly() { // make test has the tests of package comparison
		tests["sweep"] = runSweep
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, binary) })
	}
}

func runCompares(t *testing.T, binary string) {
	dir := t.TempDir()
	jsonFile, csvFile, htmlFile := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv"), filepath.Join(dir, "r.html")
	r := runProgram(t, binary, "none", "redis", "--target", testLab.Addresses().Target, "--clients", "20", "--loops", "20", "--stock", "400",
		"--seed", "4711", "--json", jsonFile, "--csv", csvFile, "--html", htmlFile)
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.err)
	}
	all := rows(t, read(t, jsonFile))
	if len(all) != 2 || all[0].Strategy != "none" || all[1].Strategy != "redis" {
		t.Fatalf("%+v", all)
	}
	if none := all[0]; none.Lost <= 0 || none.Errors != 0 || none.Lost != none.Sold-(400-none.Remaining) || none.Verdict != "broken" {
		t.Errorf("%+v", none)
	}
	want := row{Strategy: "redis", Samples: 400, Sold: 400, Verdict: "holds", Min: all[1].Min, Median: all[1].Median}
	if all[1] != want {
		t.Errorf("%+v, want %+v", all[1], want)
	}
	first, rest, _ := strings.Cut(r.out, "\n")
	second, rest, _ := strings.Cut(rest, "\n")
	if !strings.HasPrefix(first, "✗ none   ") || !strings.HasSuffix(first, " of 400 updates lost") || second != "✓ redis  no update lost" || !strings.Contains(rest, "4711") {
		t.Errorf("stdout:\n%s", r.out)
	}
	if strings.Contains(r.out+r.err, "\x1b") {
		t.Error("escape sequences, though there is no terminal")
	}
	samples, err := csv.NewReader(strings.NewReader(read(t, csvFile))).ReadAll()
	if err != nil || len(samples) != 801 {
		t.Errorf("%d rows, %v", len(samples), err)
	}
	if page := read(t, htmlFile); !strings.Contains(page, "<svg") || !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
		t.Error("the page is incomplete")
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("%d files in the folder", len(files))
	}
}

func runSellsOut(t *testing.T, binary string) {
	r := runProgram(t, binary, "for-update", "--target", testLab.Addresses().Target, "--clients", "10", "--loops", "10", "--stock", "7")
	if r.status != 0 || !strings.HasPrefix(r.out, "✓ for-update  no update lost\n              93 requests were answered \"sold out\".\n") {
		t.Errorf("status %d\n%s%s", r.status, r.out, r.err)
	}
}

func runNothingToSell(t *testing.T, binary string) {
	r := runProgram(t, binary, "for-update", "--target", testLab.Addresses().Target, "--clients", "2", "--loops", "5", "--stock", "0")
	if r.status != 1 || !strings.HasPrefix(r.out, "? for-update  inconclusive: nothing to sell: the stock was 0\n") || !strings.Contains(r.err, "these runs are inconclusive: for-update") {
		t.Errorf("status %d\n%s%s", r.status, r.out, r.err)
	}
}

func runJSONOnStdout(t *testing.T, binary string) {
	r := runProgram(t, binary, "version", "--target", testLab.Addresses().Target, "--clients", "2", "--loops", "3", "--json", "-")
	if all := rows(t, r.out); r.status != 0 || len(all) != 1 || all[0].Sold != 6 {
		t.Errorf("status %d, %+v", r.status, all)
	}
	if !strings.Contains(r.err, "✓ version  no update lost") {
		t.Errorf("the table is not on stderr: %s", r.err)
	}
}

func runTimesOut(t *testing.T, binary string) {
	r := runProgram(t, binary, "redis", "--target", testLab.Addresses().Target, "--clients", "10", "--loops", "2", "--hold", "200ms", "--wait", "10ms", "--json", "-")
	all := rows(t, r.out)
	if r.status != 1 || len(all) != 1 || all[0].NotAcquired == 0 || all[0].Errors != all[0].NotAcquired || all[0].Verdict != "inconclusive" {
		t.Errorf("status %d, %+v", r.status, all)
	}
	if !strings.Contains(r.err, "? redis  inconclusive: ") || !strings.Contains(r.err, " of 20 requests did not acquire the lock in time") || !strings.Contains(r.err, "requests failed: redis (") {
		t.Errorf("stderr: %s", r.err)
	}
}

func runRefused(t *testing.T, binary string) {
	target := testLab.Addresses().Target
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"redis", "--target", target, "--token", "wrong"}, 1, "--token or LAB_TOKEN"},
		{[]string{"redlok", "--target", target}, 2, `strategy "redlok" does not exist; did you mean "redlock"? List them: ` + binary + " strategies"},
		{[]string{"--target", "http://127.0.0.1:1"}, 1, "cannot reach the lab"},
	} {
		r := runProgram(t, binary, test.args...)
		if r.status != test.status || !strings.Contains(r.err, test.want) || r.out != "" {
			t.Errorf("%v: status %d, stderr %s, stdout %s", test.args, r.status, r.err, r.out)
		}
	}
}

func runUnwritable(t *testing.T, binary string) {
	missing := filepath.Join(t.TempDir(), "missing", "r.json")
	r := runProgram(t, binary, "redis", "--json", missing)
	if r.status != 1 || !strings.Contains(r.err, "folder "+filepath.Dir(missing)+" does not exist") || strings.Contains(r.err, "starting a lab") {
		t.Errorf("status %d, stderr %s", r.status, r.err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return // only Linux has a file that is always full
	}
	r = runProgram(t, binary, "redis", "--target", testLab.Addresses().Target, "--clients", "1", "--loops", "1", "--json", "/dev/full")
	if r.status != 1 || !strings.Contains(r.err, "no space left on device") || !strings.Contains(r.out, "✓ redis  no update lost") {
		t.Errorf("status %d, stderr %s, stdout %s", r.status, r.err, r.out)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"strategies", "redis"}, {"explore", "none"}, {"exercise"}, {"help", "judge"}} {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		var failed bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &failed
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(failed.String(), "no space left on device") {
			t.Errorf("%q with a full output: %v, %s", args, err, failed.String())
		}
	}
}

// endless starts a service that answers no sale until the test ends. waiting counts the sales.
func endless(t *testing.T) (target string, waiting *atomic.Int64) {
	t.Helper()
	waiting = new(atomic.Int64)
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/strategies":
			_, _ = w.Write([]byte(`[{"id":"redis","safe":true,"core":true}]`))
		case "/stock/1":
			_, _ = w.Write([]byte(`{"id":1,"count":5000,"version":0,"fence":0}`))
		default:
			waiting.Add(1)
			<-over
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	return server.URL, waiting
}

func runInterrupted(t *testing.T, binary string) {
	target, waiting := endless(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	cmd, wait := program(t, binary, "redis", "--target", target, "--clients", "3", "--loops", "10", "--json", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rigtest.Eventually(t, "three requests wait", func() (bool, string) { return waiting.Load() == 3, "" })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r := wait()
	if r.status != 130 || !strings.Contains(r.out, "redis (partial)") || !strings.Contains(r.out, "stopped early, after 3 of 30 requests") {
		t.Errorf("status %d, stdout %s, stderr %s", r.status, r.out, r.err)
	}
	if all := rows(t, read(t, path)); len(all) != 1 || !all[0].Partial || all[0].Samples != 3 || all[0].Verdict != "inconclusive" {
		t.Errorf("%+v", all)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files in the folder", len(files))
	}
}

func runInterruptedTwice(t *testing.T, binary string) {
	target, waiting := endless(t)
	cmd, wait := program(t, binary, "redis", "--target", target, "--clients", "3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rigtest.Eventually(t, "three requests wait", func() (bool, string) { return waiting.Load() == 3, "" })
	ended := make(chan ran, 1)
	go func() { ended <- wait() }()
	for {
		// oversell may miss the second signal while it handles the first. Then send a third signal.
		_ = cmd.Process.Signal(syscall.SIGINT) // the program may already have ended
		select {
		case r := <-ended:
			if r.status != -1 || r.out != "" {
				t.Errorf("status %d, stdout %s, stderr %s", r.status, r.out, r.err)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func runOpenLoop(t *testing.T, binary string) {
	r := runProgram(t, binary, "redis", "--target", testLab.Addresses().Target, "--clients", "10", "--loops", "10",
		"--rate", "200/s", "--qty", "2", "--hold", "1ms", "--wait", "5s", "--stock", "200", "--json", "-")
	var all []struct {
		row
		Open struct {
			Due  float64 `json:"due_per_s"`
			Sent struct {
				P99 float64 `json:"p99"`
			} `json:"from_sent_ms"`
		} `json:"open"`
		P99  float64 `json:"p99_ms"`
		Held struct {
			P50 float64 `json:"p50"`
		} `json:"held_ms"`
	}
	if err := json.Unmarshal([]byte(r.out), &all); err != nil || r.status != 0 || len(all) != 1 {
		t.Fatalf("status %d, %v, %s", r.status, err, r.err)
	}
	got := all[0]
	if got.Sold != 200 || got.Samples != 100 || got.Remaining != 0 || got.Verdict != "holds" || got.Held.P50 < 1 ||
		got.Open.Due != 200 || got.Open.Sent.P99 <= 0 || got.P99 < got.Open.Sent.P99 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(r.err, "Open loop at 200/s: 99% of the requests took at most ") || !strings.Contains(r.err, "100 requests at 200/s over 10 connections") {
		t.Errorf("stderr %s", r.err)
	}
}

func runOpenLoopInterrupted(t *testing.T, binary string) {
	target, waiting := endless(t)
	cmd, wait := program(t, binary, "redis", "--target", target, "--clients", "3", "--loops", "10", "--rate", "100/s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rigtest.Eventually(t, "three requests wait", func() (bool, string) { return waiting.Load() == 3, "" })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 130 || !strings.Contains(r.out, "redis (partial)") || !strings.Contains(r.out, "stopped early, after 3 of 30 requests") {
		t.Errorf("status %d, stdout %s, stderr %s", r.status, r.out, r.err)
	}
}

func runSweep(t *testing.T, binary string) {
	page := filepath.Join(t.TempDir(), "curve.html")
	restock(t, 77)
	r := runProgram(t, binary, "for-update", "--target", testLab.Addresses().Target, "--sweep", "clients=1..2", "--json", "-", "--html", page)
	var curves []struct {
		Strategy string
		Points   []row
	}
	if err := json.Unmarshal([]byte(r.out), &curves); err != nil || r.status != 0 || len(curves) != 1 || len(curves[0].Points) != 2 {
		t.Fatalf("status %d, %v, %+v, %s", r.status, err, curves, r.err)
	}
	if now := left(t); now != 77 {
		t.Errorf("the sweep left a stock of %d, and found 77", now)
	}
	for _, p := range curves[0].Points {
		if p.Verdict != "holds" || p.Sold == 0 || p.SoldOut != 0 || p.Partial {
			t.Errorf("%+v", p)
		}
	}
	if !strings.Contains(r.err, "retries/sale") || !strings.Contains(r.err, "✓ for-update  no update lost; ") || !strings.Contains(r.err, "peak at ") || !strings.Contains(read(t, page), "over the clients, logarithmic") {
		t.Errorf("stderr %s", r.err)
	}
}

// TestRunDeployment checks that with --delay every sale takes longer than without, and that the report
// has the two conditions. A sale awaits at least two answers of servers. The second run has a lab of its own.
func TestRunDeployment(t *testing.T) {
	strategies := []string{"for-update", "redis"}
	if rigtest.IsNightly() {
		strategies = append(strategies, "zk")
	}
	load := slices.Concat(strategies, []string{"--clients", "3", "--loops", "5", "--json", "-"})
	r := runProgram(t, built(), append(load, "--target", testLab.Addresses().Target)...)
	plain := rows(t, r.out)
	t.Parallel() // only now, as the run sets the stock of testLab
	r = runProgram(t, built(), append(load, "--delay", "40ms", "--fsync")...)
	delayed := rows(t, r.out)
	if r.status != 0 || len(plain) != len(strategies) || len(delayed) != len(strategies) {
		t.Fatalf("status %d, %+v, %+v, stderr %s", r.status, plain, delayed, r.err)
	}
	for i, d := range delayed {
		if d.Sold != 15 || d.DelayMS != 40 || !d.Fsync || d.Min < 80 || d.Median <= plain[i].Median || plain[i].DelayMS != 0 || plain[i].Fsync {
			t.Errorf("%+v, without a delay %+v", d, plain[i])
		}
	}
	if want := "each answer of a server to a replica takes 40ms longer, each write is synced to the disk"; !strings.Contains(r.err, want) {
		t.Errorf("no %q in %s", want, r.err)
	}
}
