package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oversell/api"
)

// Of a recharge, a killed replica leaves all or nothing, and the retry is told which.
func TestReplicaDiesInARecharge(t *testing.T) {
	for _, guard := range []string{"redis", "version", "key"} {
		for step, then := range map[string]string{"read": "200 credited", "inserted": "200 credited", "written": "200 credited_before"} {
			t.Run(guard+" "+step, func(t *testing.T) {
				at := scene(t)
				must(t, at.Target.Call(t.Context(), http.MethodPut, "/orders/1?amount=500", nil, nil))
				path := "/orders/1/recharge?amount=500&lease=2s&guard=" + guard
				victim := at.Replicas[1]
				must(t, victim.Arm(t.Context(), api.Failpoint{Key: "order:1", Step: api.Step(step)}))
				broken := make(chan string, 1)
				go func() { broken <- post(t.Context(), at.Target.HTTP, victim.Base+path, "retry-1").told() }()
				eventually(t, "the victim is there", func() (bool, string) {
					stopped, err := victim.Paused(t.Context())
					return len(stopped) == 1, fmt.Sprintf("%v, %v", stopped, err)
				})
				server(t, "replica-2").Kill()
				if told := <-broken; strings.HasPrefix(told, "200") {
					t.Errorf("the victim's client was told %s", told)
				}
				if told := post(t.Context(), at.Target.HTTP, at.Replicas[0].Base+path+"&wait=60s", "retry-1").told(); told != then {
					t.Errorf("the retry was told %s, want %s", told, then)
				}
				balance(t, at.Replicas[0], 1, 500)
				must(t, server(t, "replica-2").Start(t.Context()))
				eventually(t, "the replica is back", func() (bool, string) {
					err := victim.Ready(t.Context())
					return err == nil, fmt.Sprint(err)
				})
			})
		}
	}
}

// balance is that of the order's account.
func balance(t *testing.T, at api.Client, order, want int) {
	t.Helper()
	var row struct{ Balance int }
	must(t, at.Call(t.Context(), http.MethodGet, fmt.Sprintf("/orders/%d", order), nil, &row))
	if row.Balance != want {
		t.Errorf("order %d: the balance is %d, want %d", order, row.Balance, want)
	}
}
