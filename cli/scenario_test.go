package cli_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"oversell/lab/replica"
	"oversell/lab/scenario"
)

// everyRun asks for as many runs as make scenarios has: a safe guard must hold in all of
// them, and any other one must break in all of its own.
const everyRun = "OVERSELL_SCENARIOS"

func runsOf(guard scenario.Guard) int {
	switch {
	case os.Getenv(everyRun) == "":
		return 1
	case guard.Safe:
		return 50
	default:
		return 10
	}
}

// TestScenarios: a guard that claims to be safe keeps the invariant in every run, one that
// does not breaks it in every run; what customers were told is what the tables hold.
func TestScenarios(t *testing.T) {
	for _, s := range scenario.All() {
		if s.Replicas > len(shop.Addresses().Replicas) {
			continue // it has a lab and a test of its own
		}
		for _, guard := range s.Guards {
			t.Run(s.ID+" "+guard.ID, func(t *testing.T) {
				at := scene(t)
				for range runsOf(guard) {
					r, err := s.Run(t.Context(), at, guard)
					if err != nil {
						t.Fatal(err)
					}
					if !r.AsClaimed() {
						t.Errorf("safe %t, and %s told %v, broken: %q", r.Safe, r.Sentence.EN, r.Told, r.Broken)
					}
					if testing.Verbose() {
						t.Log(r.Sentence.EN, r.Told, r.Broken)
					}
				}
			})
		}
	}
}

// scene is this package's lab, as a scenario sees it.
func scene(t *testing.T) scenario.Shop {
	t.Helper()
	addrs := shop.Addresses()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200, MaxConnsPerHost: 200}, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	at := scenario.Shop{Target: replica.Replica{Base: addrs.Target, Token: token, HTTP: client}}
	for _, base := range addrs.Replicas {
		at.Replicas = append(at.Replicas, replica.Replica{Base: base, Token: token, HTTP: client})
	}
	return at
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
