package lockstest_test

import (
	"context"
	"flag"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"oversell/locks"
	"oversell/locks/lockstest"
)

// deskEnv makes a worker of the test binary. It is the address of the desk.
const deskEnv = "OVERSELL_LOCKSTEST_DESK"

func TestMain(m *testing.M) {
	if address := os.Getenv(deskEnv); address != "" {
		if err := work(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// The checks wait for leases more than they compute.
	if err := flag.Set("test.parallel", "14"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func work(address string) error {
	desk, err := rpc.Dial("unix", address)
	if err != nil {
		return err
	}
	opened := map[string]locks.Strategy{}
	var opening sync.Mutex
	return lockstest.Work(os.Stdin, os.Stdout, func(id string) (locks.Strategy, error) {
		opening.Lock()
		defer opening.Unlock()
		if opened[id] == nil {
			opened[id] = newShop(desk, flaw(id))
		}
		return opened[id], nil
	})
}

// fair is the desk with a crew around it.
type fair struct {
	desk *Desk
	crew *lockstest.Crew
}

func openFair(t *testing.T) fair {
	t.Helper()
	desk, address := openDesk(t)
	crew := &lockstest.Crew{Long: 40 * time.Second, Command: func(time.Duration) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), deskEnv+"="+address, "GORACE=halt_on_error=1 atexit_sleep_ms=0")
		return cmd
	}}
	t.Cleanup(func() {
		if err := crew.Close(); err != nil {
			t.Error(err)
		}
	})
	return fair{desk, crew}
}

func (f fair) subject(broken flaw) *lockstest.Subject {
	stop := func(down bool) func(context.Context) error {
		return func(context.Context) error { f.desk.close(down); return nil }
	}
	return &lockstest.Subject{
		Operations: map[string]func(context.Context) (int64, error){"desk": f.desk.operations},
		Card:       cardOf(broken), Crew: f.crew, NewProduct: f.desk.newProduct, Count: f.desk.count,
		Lease: 1500 * time.Millisecond, Patience: 5 * time.Second,
		Outages: map[string]lockstest.Outage{"desk": {Stop: stop(true), Start: stop(false)}},
	}
}

// TestSound: a sound lock passes every check, and none is silent about it.
func TestSound(t *testing.T) {
	t.Parallel()
	lockstest.Run(t, openFair(t).subject(sound))
}

// TestSoundOutage is the same for the checks that take the desk away.
func TestSoundOutage(t *testing.T) {
	t.Parallel()
	lockstest.RunAlone(t, openFair(t).subject(sound))
}
