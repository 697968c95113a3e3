package interop

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os/exec"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"oversell/api"
	"oversell/lab/measure"
)

// The load of TestVegeta: requests are due at even times, and few enough that no client waits for long.
const (
	ratePerSecond = 200
	loadLength    = 3 * time.Second
	requests      = ratePerSecond * int(loadLength/time.Second)
)

// loaded has what a load generator reports.
type loaded struct {
	sold     int
	rate     float64 // requests in a second
	p50, p99 time.Duration
}

// TestVegeta sends the same load with the program's own generator and with vegeta, in turn. Every sale of both must be
// in the row. Both must send all requests at their rate, with medians that agree within a factor of 2: on a busy
// machine, in one of some rounds.
func TestVegeta(t *testing.T) {
	for _, strategy := range []string{"atomic", "redis"} {
		t.Run(strategy, func(t *testing.T) {
			for range 10 {
				ours, theirs := sell(t, "oversell run", strategy, byOversell), sell(t, "vegeta", strategy, byVegeta)
				if ours.steady() && theirs.steady() && ours.p50 < 2*theirs.p50 && theirs.p50 < 2*ours.p50 {
					return
				}
			}
			t.Error("in no round did both send all requests at their rate, with medians that agree")
		})
	}
}

// steady reports whether all requests were sent at their rate.
func (l loaded) steady() bool { return l.sold == requests && math.Abs(l.rate/ratePerSecond-1) < 0.05 }

// sell compares the sales of a load with the row.
func sell(t *testing.T, name, strategy string, send func(*testing.T, string) loaded) loaded {
	t.Helper()
	setStock(t, requests)
	l := send(t, strategy)
	t.Logf("%-12s %-6s %d sold, %.1f a second, median %v, p99 %v", name, strategy, l.sold, l.rate, l.p50, l.p99)
	if left := countStock(t); left != requests-l.sold {
		t.Errorf("%s: %d of %d sold, and %d left", name, l.sold, requests, left)
	}
	return l
}

func byOversell(t *testing.T, strategy string) loaded {
	t.Helper()
	const clients = 100 // more than are busy at any time
	at := servers.Addresses()
	//nolint:gosec // our own program
	command := exec.CommandContext(t.Context(), "../bin/oversell", "run", strategy, "--quiet", "--json", "-",
		"--target", at.Target, "--token", at.Token, "--stock", fmt.Sprint(requests),
		"--rate", fmt.Sprintf("%d/s", ratePerSecond), "--clients", fmt.Sprint(clients), "--loops", fmt.Sprint(requests/clients))
	text, err := command.Output()
	var results []measure.Result
	if err == nil {
		err = json.Unmarshal(text, &results)
	}
	if err != nil || len(results) != 1 || results[0].Open == nil || results[0].LostUpdates != 0 {
		t.Fatalf("%v\n%s", err, text)
	}
	r, unit := results[0], float64(time.Millisecond)
	sent := r.Open.FromSent // vegeta counts from the sending, too
	return loaded{r.Sold, r.Open.SentPerS, time.Duration(sent.P50 * unit), time.Duration(sent.P99 * unit)}
}

func byVegeta(t *testing.T, strategy string) loaded {
	t.Helper()
	target := vegeta.Target{Method: http.MethodGet, URL: servers.Addresses().Target + "/check/lock?strategy=" + strategy}
	var m vegeta.Metrics
	sold := 0
	for result := range vegeta.NewAttacker().Attack(
		vegeta.NewStaticTargeter(target), vegeta.ConstantPacer{Freq: ratePerSecond, Per: time.Second}, loadLength, strategy,
	) {
		var sale api.Sale
		if err := json.Unmarshal(result.Body, &sale); err != nil || sale.Outcome != api.Sold {
			t.Errorf("vegeta: %s, %s", result.Error, result.Body)
		} else {
			sold++
		}
		m.Add(result)
	}
	m.Close()
	return loaded{sold, m.Rate, m.Latencies.P50, m.Latencies.P99}
}
