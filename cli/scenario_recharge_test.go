package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oversell/api"
)

// TestReplicaDiesInARecharge kills a replica during a recharge (a payment into an account). The
// amount must be credited completely or not at all. The answer to a retry must say whether the
// amount was credited before the retry.
func TestReplicaDiesInARecharge(t *testing.T) {
	for _, guard := range []string{"redis", "version", "key"} {
		for step, then := range map[string]string{"read": "200 credited", "inserted": "200 credited", "written": "200 credited_before"} {
			t.Run(guard+" "+step, func(t *testing.T) {
				at := scenarioService(t)
				must(t, at.Target.Call(t.Context(), http.MethodPut, "/orders/1?amount=500", nil, nil))
				path := "/orders/1/recharge?amount=500&lease=2s&guard=" + guard
				killed := at.Replicas[1]
				must(t, killed.Arm(t.Context(), api.Failpoint{Key: "order:1", Step: api.Step(step)}))
				broken := make(chan string, 1)
				go func() { broken <- post(t.Context(), at.Target.HTTP, killed.Base+path, "retry-1").summary() }()
				eventually(t, "the request is paused", func() (bool, string) {
					stopped, err := killed.Paused(t.Context())
					return len(stopped) == 1, fmt.Sprintf("%v, %v", stopped, err)
				})
				server(t, "replica-2").Kill()
				if answer := <-broken; strings.HasPrefix(answer, "200") {
					t.Errorf("the request to the killed replica: %s", answer)
				}
				if answer := post(t.Context(), at.Target.HTTP, at.Replicas[0].Base+path+"&wait=60s", "retry-1").summary(); answer != then {
					t.Errorf("the retry: %s, want %s", answer, then)
				}
				balance(t, at.Replicas[0], 1, 500)
				must(t, server(t, "replica-2").Start(t.Context()))
				eventually(t, "the replica is ready", func() (bool, string) {
					err := killed.Ready(t.Context())
					return err == nil, fmt.Sprint(err)
				})
			})
		}
	}
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
