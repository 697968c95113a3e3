package cli_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/lab/rig/rigtest"
)

// merged is a result in the JSON of `oversell run --agents`, with only the fields that the tests read.
type merged struct {
	row
	Missing int     `json:"missing"`
	P99     float64 `json:"p99_ms"`
	PerS    float64 `json:"throughput_per_s"`
	Open    struct {
		Due float64 `json:"due_per_s"`
	} `json:"open"`
	Agents []struct {
		Address string  `json:"address"`
		Samples int     `json:"samples"`
		LateMS  float64 `json:"late_ms"`
	} `json:"agents"`
}

func parseMerged(t *testing.T, path string) merged {
	t.Helper()
	var all []merged
	if err := json.Unmarshal([]byte(read(t, path)), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	return all[0]
}

// agentProcess is a running `oversell agent`.
type agentProcess struct {
	cmd     *exec.Cmd
	address string
	ended   chan struct{} // closed when the process has ended
}

// startAgent starts an agent on a free port, and ends it with the test.
func startAgent(t *testing.T, target string) *agentProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(), "agent", "--addr", "127.0.0.1:0", "--target", target)
	cmd.Env = append(os.Environ(), "LAB_TOKEN="+token)
	errOut, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &agentProcess{cmd: cmd, ended: make(chan struct{})}
	lines := bufio.NewScanner(errOut)
	if !lines.Scan() {
		t.Fatal("the agent did not start")
	}
	at := regexp.MustCompile(`^the agent for (\S+) is on (127\.0\.0\.1:\d+)$`).FindStringSubmatch(lines.Text())
	if at == nil || at[1] != target {
		t.Fatalf("the agent printed %s", lines.Text())
	}
	a.address = at[2]
	go func() {
		defer close(a.ended)
		for lines.Scan() {
			continue // a full pipe would stop the agent
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-a.ended
	})
	return a
}

// TestAgents runs loads with two agents, which are processes of their own.
func TestAgents(t *testing.T) {
	target := testLab.Addresses().Target
	tests := map[string]func(*testing.T, string){
		"closed loop": agentsClosedLoop, "refused": agentsRefuse, "wrong command line": agentsWrongCommandLine,
		"agent killed": agentKilled, "coordinator interrupted": coordinatorInterrupted,
	}
	if rigtest.IsNightly() {
		maps.Copy(tests, map[string]func(*testing.T, string){
			"open loop": agentsOpenLoop, "agent interrupted": agentInterrupted,
			"coordinator killed": coordinatorKilled, "two coordinators": twoCoordinators,
		})
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, target) })
	}
}

// samples returns the requests of a CSV in JMeter's columns, as the given column's numbers, and the
// number of requests of each client.
func samples(t *testing.T, path, column string) (values []int, clients map[string]int) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(read(t, path))).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	clients = map[string]int{}
	thread, at := slices.Index(all[0], "threadName"), slices.Index(all[0], column)
	for _, fields := range all[1:] {
		value, err := strconv.Atoi(fields[at])
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		clients[fields[thread]]++
	}
	slices.Sort(values)
	return values, clients
}

// agentsClosedLoop checks that the agents send exactly the plan, and that the percentiles are those of
// all requests together.
func agentsClosedLoop(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	dir := t.TempDir()
	jsonFile, csvFile := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv")
	r := runProgram(t, built(), "redis", "--target", target, "--agents", a.address+","+b.address,
		"--clients", "7", "--loops", "20", "--stock", "200", "--wait", "60s", "--json", jsonFile, "--csv", csvFile)
	got := parseMerged(t, jsonFile)
	want := row{Strategy: "redis", Samples: 140, Sold: 140, Remaining: 60, Verdict: "holds", Min: got.Min, Median: got.Median}
	if r.status != 0 || got.row != want || got.Missing != 0 {
		t.Errorf("status %d, %+v, want %+v, stderr %s", r.status, got, want, r.err)
	}
	if len(got.Agents) != 2 || got.Agents[0].Samples != 80 || got.Agents[1].Samples != 60 || got.Agents[1].Address != b.address {
		t.Errorf("%+v", got.Agents)
	}
	elapsed, clients := samples(t, csvFile, "elapsed")
	if len(elapsed) != 140 || len(clients) != 7 {
		t.Fatalf("%d requests of the clients %v", len(elapsed), clients)
	}
	for client, n := range clients {
		if n != 20 {
			t.Errorf("client %s sent %d requests", client, n)
		}
	}
	// The times in the CSV are whole milliseconds, without their fractions.
	if median, p99 := float64(elapsed[69]), float64(elapsed[138]); math.Abs(got.Median-median) > 1.001 || math.Abs(got.P99-p99) > 1.001 {
		t.Errorf("the median is %v ms and the 99th percentile %v ms, of all requests %v and %v", got.Median, got.P99, median, p99)
	}
	for _, agent := range []*agentProcess{a, b} {
		if clock := "agent " + agent.address + ": its clock differs by "; !strings.Contains(r.err, clock) || !strings.Contains(r.out, agent.address+", ") {
			t.Errorf("no %q in %s%s", clock, r.err, r.out)
		}
	}
}

// agentsOpenLoop checks that the sum of the agents' rates is the rate of the plan, to 5 %. It uses the
// due times: they do not depend on the machine's load.
func agentsOpenLoop(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	dir := t.TempDir()
	jsonFile, csvFile := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv")
	r := runProgram(t, built(), "redis", "--target", target, "--agents", a.address+","+b.address,
		"--clients", "10", "--loops", "40", "--rate", "200/s", "--wait", "60s", "--json", jsonFile, "--csv", csvFile)
	got := parseMerged(t, jsonFile)
	if r.status != 0 || got.Samples != 400 || got.Sold != 400 || got.Open.Due != 200 || len(got.Agents) != 2 || got.Agents[0].Samples != 200 {
		t.Fatalf("status %d, %+v, stderr %s", r.status, got, r.err)
	}
	due, _ := samples(t, csvFile, "timeStamp")
	late := max(got.Agents[0].LateMS, got.Agents[1].LateMS)
	if took, want := float64(due[399]-due[0]), 399/0.2; took < 0.95*want-late || took > 1.05*want+late {
		t.Errorf("400 requests were due in %v ms, want %v, with a start at most %v ms late", took, want, late)
	}
}

func agentsRefuse(t *testing.T, target string) {
	a, other := startAgent(t, target), startAgent(t, "http://127.0.0.1:1")
	restock(t, 77)
	for want, args := range map[string]string{
		"agent " + a.address + ": the token is wrong. Pass":                                              "--agents " + a.address + " --token wrong",
		"agent " + other.address + ": it sends requests only to http://127.0.0.1:1, not to " + target:    "--agents " + a.address + "," + other.address,
		"agent 127.0.0.1:1: cannot connect: dial tcp 127.0.0.1:1: connect: connection refused. Start it": "--agents 127.0.0.1:1",
	} {
		r := runProgram(t, built(), append([]string{"redis", "--target", target, "--clients", "2"}, strings.Fields(args)...)...)
		if r.status != 1 || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%s: status %d, stderr %s, stdout %s", args, r.status, r.err, r.out)
		}
	}
	version, err := exec.CommandContext(t.Context(), built(), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	socket, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	_, _ = fmt.Fprintf(socket, `{"hello":{"version":"v0.0.1","token":%q,"target":%q}}`+"\n", token, target)
	answer, err := bufio.NewReader(socket).ReadString('\n')
	if mine := strings.TrimSpace(string(version[strings.LastIndex(string(version), " ")+1:])); err != nil || !strings.Contains(answer, `version \"`+mine+`\" of oversell, and this program has \"v0.0.1\"`) {
		t.Errorf("version v0.0.1 got %s, %v", answer, err)
	}
	if now := left(t); now != 77 {
		t.Errorf("the stock is %d, and was 77", now)
	}
}

func agentsWrongCommandLine(t *testing.T, target string) {
	for want, args := range map[string]string{
		"run: --agents needs --target":                         "redis --agents 127.0.0.1:1",
		`run: agent "127.0.0.1": must be host:port`:            "redis --target " + target + " --agents 127.0.0.1",
		"run: agent a:1 is named twice":                        "redis --target " + target + " --agents a:1,a:1",
		"run: clients 1: each of the 2 agents needs":           "redis --clients 1 --target " + target + " --agents a:1,b:1",
		"run: clients 1: each of the 2 agents needs one or mo": "redis --sweep clients=1..5 --target " + target + " --agents a:1,b:1",
	} {
		r := runProgram(t, built(), strings.Fields(args)...)
		if r.status != 2 || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") != 1 || r.out != "" {
			t.Errorf("%s: status %d, stderr %s, stdout %s", args, r.status, r.err, r.out)
		}
	}
	for want, args := range map[string][]string{
		"agent: --token is missing": {"agent", "--addr", "127.0.0.1:0"},
		"agent: target \"ftp://h\"": {"agent", "--addr", "127.0.0.1:0", "--token", "x", "--target", "ftp://h"},
	} {
		cmd := exec.CommandContext(t.Context(), built(), args...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LAB_TOKEN") })
		out, err := cmd.CombinedOutput()
		if status := (*exec.ExitError)(nil); !errors.As(err, &status) || status.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
}

// longRun starts a run that takes minutes with the given agents. It returns when 100 pieces are sold.
func longRun(t *testing.T, target, jsonFile string, agents ...*agentProcess) (*exec.Cmd, func() ran) {
	t.Helper()
	var addresses []string
	for _, a := range agents {
		addresses = append(addresses, a.address)
	}
	restock(t, 1_000_000)
	cmd, wait := program(t, built(), "atomic", "--target", target, "--agents", strings.Join(addresses, ","),
		"--clients", "4", "--loops", "10000", "--stock", "999999", "--hold", "20ms", "--json", jsonFile)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	selling(t, 100)
	return cmd, wait
}

// selling waits until the run of longRun has sold a number of pieces.
func selling(t *testing.T, pieces int) {
	t.Helper()
	rigtest.Eventually(t, "the run sells", func() (bool, string) {
		count := left(t)
		return count <= 999_999-pieces, fmt.Sprintf("%d left", count)
	})
}

// quiet waits until no more pieces are sold.
func quiet(t *testing.T) {
	t.Helper()
	before := left(t)
	rigtest.Eventually(t, "the sales end", func() (bool, string) {
		time.Sleep(200 * time.Millisecond) // ten times the hold of a sale
		now := left(t)
		same := now == before
		before = now
		return same, fmt.Sprintf("%d left", now)
	})
}

func agentKilled(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	path := filepath.Join(t.TempDir(), "r.json")
	_, wait := longRun(t, target, path, a, b)
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r := wait()
	if r.status != 1 || !strings.Contains(r.err, "run: agent "+b.address+": the connection is lost") || strings.Contains(r.err, "run: agent "+a.address) {
		t.Errorf("status %d, stderr %s", r.status, r.err)
	}
	got := parseMerged(t, path)
	// The lost agent may have sold as many pieces as are missing in the stock, so it is not known
	// whether an update was lost.
	if !got.Partial || got.Missing != 20_000 || got.Verdict != "inconclusive" || got.Sold == 0 || got.Agents[0].Samples != got.Samples || got.Agents[1].Samples != 0 {
		t.Errorf("%+v", got)
	}
	if want := "The result is incomplete: an agent was lost, with the records of up to 20000 requests."; !strings.Contains(strings.Join(strings.Fields(r.out), " "), want) {
		t.Errorf("no %q in %s", want, r.out)
	}
	quiet(t)
}

func agentInterrupted(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	path := filepath.Join(t.TempDir(), "r.json")
	_, wait := longRun(t, target, path, a, b)
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r := wait()
	if r.status != 1 || !strings.Contains(r.err, "run: agent "+b.address+": the run was stopped: its operator stopped it") {
		t.Errorf("status %d, stderr %s", r.status, r.err)
	}
	got := parseMerged(t, path)
	if !got.Partial || got.Missing != 0 || got.Lost != 0 || got.Verdict == "broken" || got.Agents[0].Samples == 0 || got.Agents[1].Samples == 0 {
		t.Errorf("%+v", got)
	}
	<-b.ended
	if status := b.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("the agent ended with status %d", status)
	}
	quiet(t)
}

func coordinatorInterrupted(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	path := filepath.Join(t.TempDir(), "r.json")
	cmd, wait := longRun(t, target, path, a, b)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r := wait()
	got := parseMerged(t, path)
	if r.status != 130 || !got.Partial || got.Missing != 0 || got.Lost != 0 || got.Verdict == "broken" || got.Agents[0].Samples == 0 || got.Agents[1].Samples == 0 {
		t.Errorf("status %d, %+v, stderr %s", r.status, got, r.err)
	}
	quiet(t)
	sellsAgain(t, target, a, b)
}

// coordinatorKilled kills the coordinator with a signal that it cannot handle: the agents must stop.
func coordinatorKilled(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	cmd, wait := longRun(t, target, filepath.Join(t.TempDir(), "r.json"), a, b)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != -1 {
		t.Errorf("status %d", r.status)
	}
	quiet(t)
	sellsAgain(t, target, a, b)
}

func twoCoordinators(t *testing.T, target string) {
	a, b := startAgent(t, target), startAgent(t, target)
	cmd, wait := longRun(t, target, filepath.Join(t.TempDir(), "r.json"), a, b)
	r := runProgram(t, built(), "redis", "--target", target, "--agents", b.address, "--clients", "1")
	if r.status != 1 || !strings.Contains(r.err, "agent "+b.address+": it already works for another coordinator, 127.0.0.1:") || r.out != "" {
		t.Errorf("status %d, stderr %s, stdout %s", r.status, r.err, r.out)
	}
	selling(t, 999_999-left(t)+100) // the first run goes on
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 130 {
		t.Errorf("the first run ended with status %d: %s", r.status, r.err)
	}
}

// sellsAgain checks that the agents work for a new coordinator.
func sellsAgain(t *testing.T, target string, agents ...*agentProcess) {
	t.Helper()
	for _, a := range agents {
		r := runProgram(t, built(), "redis", "--target", target, "--agents", a.address, "--clients", "2", "--loops", "5", "--json", "-")
		if all := rows(t, r.out); r.status != 0 || len(all) != 1 || all[0].Sold != 10 {
			t.Errorf("status %d, %+v, stderr %s", r.status, all, r.err)
		}
	}
}

// TestAgentsHalves compares two agents that have half of the clients each with one agent that has
// all. Each request works for 250 ms before it sells, so the clients limit the throughput, and not the
// machine: two agents on one machine cannot send twice as much under full load.
func TestAgentsHalves(t *testing.T) {
	if os.Getenv("OVERSELL_TOPOLOGIES") == "" {
		t.Skip("make topologies runs it")
	}
	target := testLab.Addresses().Target
	a, b := startAgent(t, target), startAgent(t, target)
	perSecond := func(agents string) float64 {
		path := filepath.Join(t.TempDir(), "r.json")
		r := runProgram(t, built(), "atomic", "--target", target, "--agents", agents, "--clients", "20", "--loops", "8",
			"--outside", "250ms", "--wait", "60s", "--json", path)
		got := parseMerged(t, path)
		if r.status != 0 || got.Sold != 160 || got.Samples != 160 || got.Verdict != "holds" {
			t.Fatalf("status %d, %+v, stderr %s", r.status, got, r.err)
		}
		return got.PerS
	}
	var ratios []float64
	for range 5 {
		one := perSecond(a.address)
		two := perSecond(a.address + "," + b.address)
		ratios = append(ratios, two/one)
		t.Logf("one agent: %.1f/s, two agents: %.1f/s, ratio %.3f", one, two, two/one)
	}
	slices.Sort(ratios)
	if median := ratios[2]; math.Abs(median-1) > 0.05 {
		t.Errorf("the median of the ratios is %.3f", median)
	}
}
