package scenario

import (
	"net/http"
	"os"
	"testing"
	"time"

	"oversell/lab/replica"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

// shopOf is the rig's shop.
func shopOf(t *testing.T, r *rig.Rig) Shop {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 2 * time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	addrs := r.Addresses()
	shop := Shop{Target: replica.Replica{Base: addrs.Target, Token: addrs.Token, HTTP: client}}
	for _, base := range addrs.Replicas {
		shop.Replicas = append(shop.Replicas, replica.Replica{Base: base, Token: addrs.Token, HTTP: client})
	}
	return shop
}

// runsOf is how often a guard is tried: once, or with SCENARIOS=1, which is `make
// scenarios`, an unsafe one ten times and a safe one fifty.
func runsOf(t *testing.T, guard Guard) int {
	t.Helper()
	switch {
	case os.Getenv("SCENARIOS") == "":
		return 1
	case guard.Safe:
		return 50
	default:
		return 10
	}
}
