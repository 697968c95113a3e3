package lockstest_test

import (
	"flag"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"oversell/locks"
	"oversell/trial/lockstest"
)

// serverEnv is the environment variable that makes the test binary a worker. Its value is the
// server's address.
const serverEnv = "OVERSELL_LOCKSTEST_SERVER"

func TestMain(m *testing.M) {
	if address := os.Getenv(serverEnv); address != "" {
		if err := work(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// The checks mostly wait for leases, so many of them can run at once.
	if err := flag.Set("test.parallel", "14"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func work(address string) error {
	server, err := rpc.Dial("unix", address)
	if err != nil {
		return err
	}
	opened := map[string]locks.Strategy{}
	var opening sync.Mutex
	return lockstest.Work(os.Stdin, os.Stdout, func(id string) (locks.Strategy, error) {
		opening.Lock()
		defer opening.Unlock()
		if opened[id] == nil {
			opened[id] = newStrategy(server, flaw(id))
		}
		return opened[id], nil
	})
}

// testbed is an in-memory server, and the worker processes that use it.
type testbed struct {
	server  *Server
	workers *lockstest.Workers
}

func newTestbed(t *testing.T) testbed {
	t.Helper()
	server, address := startServer(t)
	workers := &lockstest.Workers{Lease: 40 * time.Second, Command: func(time.Duration) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serverEnv+"="+address, "GORACE=halt_on_error=1 atexit_sleep_ms=0")
		return cmd
	}}
	t.Cleanup(func() {
		if err := workers.Close(); err != nil {
			t.Error(err)
		}
	})
	return testbed{server, workers}
}

func (b testbed) config(planted flaw) *lockstest.Config {
	return &lockstest.Config{
		Card: cardOf(planted), Workers: b.workers, NewProduct: b.server.newProduct, Count: b.server.count,
		Lease: 1500 * time.Millisecond, Timeout: 5 * time.Second,
	}
}

// TestSound checks that a sound lock passes every check that applies to it.
func TestSound(t *testing.T) {
	t.Parallel()
	none := func(lockstest.Check) bool { return false }
	err := lockstest.Contract(t.Context(), newTestbed(t).config(sound), 3*time.Minute, none, func(r lockstest.CheckResult) {
		if r.Failed+r.Inconclusive != "" {
			t.Errorf("%s: %s: %s%s", r.Check, r.Claimed, r.Failed, r.Inconclusive)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
