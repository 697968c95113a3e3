package handlers_test

import (
	"fmt"
	"net/http"
	"testing"

	"oversell/api"
)

// TestReplicaDiesInARecharge kills a replica during a recharge (a payment into an account). The
// amount must be credited completely or not at all. The answer to a retry must say whether the
// amount was credited before the retry.
// Each case has its own order, and all die together.
func TestReplicaDiesInARecharge(t *testing.T) {
	type dying struct{ guard, step, then string } // then is the answer to the retry
	var cases []dying
	for _, guard := range []string{"redis", "version", "key"} {
		cases = append(cases, dying{guard, "read", "200 credited"}, dying{guard, "inserted", "200 credited"},
			dying{guard, "written", "200 credited_before"})
	}
	at := labClients(t)
	killed, survivor := at.Replicas[1], at.Replicas[0]
	var paths []string
	for i, c := range cases {
		must(t, at.Target.Call(t.Context(), http.MethodPut, fmt.Sprintf("/orders/%d?amount=500", i+1), nil, nil))
		must(t, killed.Arm(t.Context(), api.Failpoint{Key: fmt.Sprintf("order:%d", i+1), Step: api.Step(c.step)}))
		paths = append(paths, fmt.Sprintf("/orders/%d/recharge?amount=500&lease=2s&guard=%s", i+1, c.guard))
	}
	killPaused(t, killed, paths)
	for i, c := range cases {
		answer := post(t.Context(), at.Target.HTTP, survivor.Base+paths[i]+"&wait=60s", fmt.Sprintf("retry-%d", i)).summary()
		if answer != c.then {
			t.Errorf("%s %s: the retry: %s, want %s", c.guard, c.step, answer, c.then)
		}
		balance(t, survivor, i+1, 500)
	}
	startAgain(t, killed)
}

// balance fails the test if the balance of the order's account is not want.
func balance(t *testing.T, at api.Client, order, want int) {
	t.Helper()
	var row struct{ Balance int }
	must(t, at.Call(t.Context(), http.MethodGet, fmt.Sprintf("/orders/%d", order), nil, &row))
	if row.Balance != want {
		t.Errorf("order %d: the balance is %d, want %d", order, row.Balance, want)
	}
}
