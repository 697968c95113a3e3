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

const token = "test-token"

// class has a replica for each window. The tests run one after the other.
var class *rig.Rig

func TestMain(m *testing.M) {
	cfg := rig.Classroom("", token)
	cfg.Ports, cfg.Replicas, cfg.Nginx = rig.Ports{}, windows, false
	rigtest.MainWith(m, cfg, func(r *rig.Rig) { class = r })
}

// open is the class's shop.
func open(t *testing.T) Shop {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 2 * time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	addrs := class.Addresses()
	shop := Shop{Target: replica.Replica{Base: addrs.Target, Token: token, HTTP: client}}
	for _, base := range addrs.Replicas {
		shop.Replicas = append(shop.Replicas, replica.Replica{Base: base, Token: token, HTTP: client})
	}
	return shop
}

// runsOf is how often a guard is tried: once, or as make scenarios wants it.
func runsOf(guard Guard) int {
	switch {
	case os.Getenv("OVERSELL_SCENARIOS") == "":
		return 1
	case guard.Safe:
		return 50
	default:
		return 10
	}
}
