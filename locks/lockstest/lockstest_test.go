package lockstest_test

import (
	"context"
	"flag"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
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
	if err := flag.Set("test.parallel", "16"); err != nil {
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
	crew := &lockstest.Crew{Long: 10 * time.Second, Command: func(time.Duration) *exec.Cmd {
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
		Card: cardOf(broken), Crew: f.crew, NewProduct: f.desk.newProduct, Count: f.desk.count,
		Lease: time.Second, Patience: 4 * time.Second,
		Outages: map[string]lockstest.Outage{"desk": {Stop: stop(true), Start: stop(false)}},
	}
}

// TestSound: a sound lock passes every check, and none is silent about it.
func TestSound(t *testing.T) {
	t.Parallel()
	lockstest.Run(t, openFair(t).subject(sound))
}

func TestSoundOutage(t *testing.T) {
	t.Parallel()
	lockstest.RunAlone(t, openFair(t).subject(sound))
}

// TestFlaws: each flaw is caught by the checks that are meant for it, and by no
// other. may are those that see it or not, as chance has it.
func TestFlaws(t *testing.T) {
	t.Parallel()
	tests := []struct {
		flaw        flaw
		caught, may []string
	}{
		{flaw: letsEverybodyIn, caught: []string{}},
		{flaw: onlyNextDoor, caught: []string{}},
		{flaw: hurries, caught: []string{}},
		{flaw: haunts, caught: []string{}},
		{flaw: hidesTheCause, caught: []string{}},
		{flaw: forgetsItsGrant, caught: []string{}},
		{flaw: releasesForTheLiving, caught: []string{}},
		{flaw: holdsTwice, caught: []string{}},
		{flaw: freesStrangers, caught: []string{}},
		{flaw: neverExpires, caught: []string{}},
		{flaw: neverRenews, caught: []string{}},
		{flaw: keepsTheLossQuiet, caught: []string{}},
		{flaw: fenceStandsStill, caught: []string{}},
		{flaw: waitsForItself, caught: []string{}},
		{flaw: blamesAnother, caught: []string{}},
		{flaw: mumblesOutages, caught: []string{}},
		{flaw: readsEarly, caught: []string{}},
		{flaw: releasesEarly, caught: []string{}},
		{flaw: writesWithoutFence, caught: []string{}},
		{flaw: sellsAir, caught: []string{}},
		{flaw: forgetsToRelease, caught: []string{}},
		{flaw: deniesReEntry, caught: []string{}},
		{flaw: deniesFence, caught: []string{}},
		{flaw: deniesRenewal, caught: []string{}},
		{flaw: deniesLease, caught: []string{}},
		{flaw: deniesScope, caught: []string{}},
		{flaw: deniesSafety, caught: []string{}},
		{flaw: hidesItsPause, caught: []string{}},
	}
	for _, test := range tests {
		t.Run(string(test.flaw), func(t *testing.T) {
			t.Parallel()
			seen := sees(t, openFair(t).subject(test.flaw))
			for name, err := range seen {
				switch {
				case err != nil && !slices.Contains(test.caught, name) && !slices.Contains(test.may, name):
					t.Errorf("%s sees a flaw that is not its own: %v", name, err)
				case err == nil && slices.Contains(test.caught, name):
					t.Errorf("%s does not see the flaw", name)
				}
			}
			for _, name := range append(test.caught, test.may...) {
				if _, ran := seen[name]; !ran {
					t.Errorf("no check %q was run", name)
				}
			}
		})
	}
}

// sees runs every check that applies, and returns what each of them says.
func sees(t *testing.T, s *lockstest.Subject) map[string]error {
	t.Helper()
	seen := map[string]error{}
	var seeing sync.Mutex
	var checks sync.WaitGroup
	see := func(c lockstest.Check) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Run(ctx, s)
		seeing.Lock()
		defer seeing.Unlock()
		seen[c.Name] = err
	}
	for _, c := range lockstest.Checks() {
		if !c.Alone && c.Claim(s.Card) != lockstest.Silent {
			checks.Go(func() { see(c) })
		}
	}
	checks.Wait()
	for _, c := range lockstest.Checks() {
		if c.Alone && c.Claim(s.Card) != lockstest.Silent {
			see(c)
		}
	}
	return seen
}
