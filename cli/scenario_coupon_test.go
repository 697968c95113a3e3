package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oversell/lab/replica"
)

// couponState is what the tables hold of coupon 1.
type couponState struct {
	Initial, Count int
	users          map[int64]int // orders of each
}

func couponNow(t *testing.T, at replica.Replica) couponState {
	t.Helper()
	var s couponState
	must(t, at.Call(t.Context(), http.MethodGet, "/coupons/1", nil, &s))
	var orders []struct{ User int64 }
	must(t, at.Call(t.Context(), http.MethodGet, "/coupons/1/orders", nil, &orders))
	s.users = map[int64]int{}
	for _, o := range orders {
		s.users[o.User]++
	}
	if s.Initial-s.Count != len(orders) {
		t.Errorf("%d of %d coupons are left, and there are %d orders", s.Count, s.Initial, len(orders))
	}
	return s
}

// A replica is killed at each step of an order: between the lock and the insert, between
// the insert and the commit, between the commit and the release. The user gets one order,
// with its coupon, and waits for the dead one's lock no longer than its lease.
func TestReplicaDiesInACoupon(t *testing.T) {
	const lease = 3 * time.Second
	for _, guard := range []string{"redis", "redis-unique", "unique"} {
		for _, c := range []struct {
			step string
			then string // what the user is told in the end
		}{
			{"granted", "ordered"}, {"read", "ordered"}, {"inserted", "ordered"}, {"written", "already_taken"},
		} {
			t.Run(guard+" "+c.step, func(t *testing.T) {
				at := scene(t)
				must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?count=5", nil, nil))
				// A user of its own: the last one's lock may still be there.
				user := time.Now().UnixMicro()
				path := fmt.Sprintf("/coupons/1/orders?guard=%s&user=%d&lease=%v", guard, user, lease)
				victim, survivor := at.Replicas[1], at.Replicas[0]
				must(t, victim.StopAt(t.Context(), fmt.Sprintf("coupon:1:user:%d", user), c.step, 1))
				broken := make(chan error, 1)
				go func() {
					_, err := send(t.Context(), http.MethodPost, victim.Base, path)
					broken <- err
				}()
				eventually(t, "the victim is there", func() (bool, string) {
					stopped, err := victim.Stopped(t.Context())
					return len(stopped) == 1, fmt.Sprintf("%v, %v", stopped, err)
				})
				server(t, "replica-2").Kill()
				if err := <-broken; err == nil {
					t.Error("the victim's customer had an answer")
				}
				died := time.Now()
				eventually(t, "the user is served", func() (bool, string) {
					asked := time.Since(died)
					r := ask(t, http.MethodPost, survivor.Base, path)
					if r.Outcome == "running" && asked > lease {
						t.Errorf("%v after the death, with a lease of %v: %+v", asked, lease, r)
					}
					if r.Outcome != "running" && r.Outcome != c.then {
						t.Errorf("want %s, got %+v", c.then, r)
					}
					return r.Outcome != "running", fmt.Sprintf("%+v", r)
				})
				if now := couponNow(t, survivor); len(now.users) != 1 || now.users[user] != 1 {
					t.Errorf("orders by user: %v, want one of user %d", now.users, user)
				}
				must(t, server(t, "replica-2").Start(t.Context()))
				eventually(t, "the replica is back", func() (bool, string) {
					err := victim.Ready(t.Context())
					return err == nil, fmt.Sprint(err)
				})
			})
		}
	}
}

// The six answers, each of its own kind.
func TestCouponAnswers(t *testing.T) {
	at := scene(t)
	put := func(query string) {
		must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?"+query, nil, nil))
	}
	order := func(id, user int64) reply {
		return ask(t, http.MethodPost, at.Target.Base, fmt.Sprintf("/coupons/%d/orders?guard=redis&user=%d", id, user))
	}
	want := func(r reply, status int, outcome string) {
		t.Helper()
		if r.HTTP != status || r.Outcome != outcome || r.Detail == "" && status != http.StatusCreated {
			t.Errorf("want %d %s, got %+v", status, outcome, r)
		}
	}
	want(order(999, 1), http.StatusNotFound, "unknown_coupon")
	put("count=1&state=soon")
	want(order(1, 1), http.StatusForbidden, "not_open")
	put("count=1&state=over")
	want(order(1, 1), http.StatusGone, "over")
	put("count=2")
	first := at.Replicas[0]
	must(t, first.StopAt(t.Context(), "coupon:1:user:1", "read", 1))
	told := make(chan reply, 1)
	go func() {
		r, _ := send(t.Context(), http.MethodPost, first.Base, "/coupons/1/orders?guard=redis&user=1")
		told <- r
	}()
	eventually(t, "the first request is under way", func() (bool, string) {
		stopped, err := first.Stopped(t.Context())
		return len(stopped) == 1, fmt.Sprintf("%v, %v", stopped, err)
	})
	running := order(1, 1)
	want(running, http.StatusTooManyRequests, "running")
	if running.RetryAfter == "" {
		t.Error("when to ask again is not said")
	}
	must(t, first.GoOn(t.Context()))
	want(<-told, http.StatusCreated, "ordered")
	want(order(1, 1), http.StatusConflict, "already_taken")
	want(order(1, 2), http.StatusCreated, "ordered")
	want(order(1, 3), http.StatusConflict, "sold_out")
}

// Input that makes no sense is a 4xx that says why, and writes nothing.
func TestScenariosRefuseBadInput(t *testing.T) {
	at := scene(t)
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?count=5", nil, nil))
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/orders/1?amount=500", nil, nil))
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/orders/2?amount=500", nil, nil))
	for _, c := range []struct {
		path, key string
		status    int
		names     string // the parameter, or the outcome
	}{
		{"/coupons/1/orders", "", 400, "user"},
		{"/coupons/1/orders?user=", "", 400, "user"},
		{"/coupons/1/orders?user=0", "", 400, "user"},
		{"/coupons/1/orders?user=-1", "", 400, "user"},
		{"/coupons/1/orders?user=alice", "", 400, "user"},
		{"/coupons/1/orders?user=9007199254740992", "", 400, "user"},
		{"/coupons/1/orders?user=99999999999999999999", "", 400, "user"},
		{"/coupons/1/orders?user=1&user=2", "", 400, "user"},
		{"/coupons/1/orders?user=1&guard=prayer", "", 400, "guard"},
		{"/coupons/1/orders?user=1&lease=1ms", "", 400, "lease"},
		{"/coupons/1/orders?user=1&gaurd=redis", "", 400, "gaurd"},
		{"/coupons/zero/orders?user=1", "", 400, "id"},
		{"/coupons/0/orders?user=1", "", 400, "id"},
		{"/coupons/999/orders?user=1", "", 404, "unknown_coupon"},
		{"/orders/1/recharge", "", 400, "amount"},
		{"/orders/1/recharge?amount=-500", "", 400, "amount"},
		{"/orders/1/recharge?amount=5.00", "", 400, "amount"},
		{"/orders/1/recharge?amount=501", "", 422, "wrong_amount"},
		{"/orders/1/recharge?amount=500&work=1h", "", 400, "work"},
		{"/orders/1/recharge?amount=500&guard=prayer", "", 400, "guard"},
		{"/orders/-1/recharge?amount=500", "", 400, "id"},
		{"/orders/999/recharge?amount=500", "", 404, "unknown_order"},
		{"/orders/999/recharge?amount=500&guard=redis", "", 404, "unknown_order"},
		{"/orders/999/recharge?amount=500&guard=key", "new", 404, "unknown_order"},
		{"/orders/1/recharge?amount=500&guard=key", "", 400, "Idempotency-Key"},
		{"/orders/1/recharge?amount=500&guard=key", "two words", 400, "Idempotency-Key"},
		{"/orders/1/recharge?amount=500&guard=key", strings.Repeat("k", 65), 400, "Idempotency-Key"},
		{"/orders/1/recharge?amount=501&guard=key", "new", 422, "wrong_amount"},
	} {
		r := postKey(t, at.Target.Base+c.path, c.key)
		if r.HTTP != c.status || r.Parameter != c.names && r.Outcome != c.names || r.Detail == "" {
			t.Errorf("%s, key %q: want %d that names %s, got %+v", c.path, c.key, c.status, c.names, r)
		}
	}
	if now := couponNow(t, at.Target); len(now.users) != 0 || now.Count != 5 {
		t.Errorf("coupons were given: %+v", now)
	}
	balance(t, at.Target, 1, 0)

	// None of the refusals has used up the key.
	credit := at.Target.Base + "/orders/%d/recharge?guard=key&work=0s&amount=%d"
	for i, c := range []struct {
		order, amount int
		status        int
		outcome       string
	}{
		{1, 500, 200, "credited"},
		{1, 500, 200, "credited_before"},
		{1, 501, 422, "key_reused"}, // another body
		{2, 500, 422, "key_reused"}, // another order
	} {
		if r := postKey(t, fmt.Sprintf(credit, c.order, c.amount), "new"); r.HTTP != c.status || r.Outcome != c.outcome {
			t.Errorf("request %d with the key: want %d %s, got %+v", i+1, c.status, c.outcome, r)
		}
	}
	balance(t, at.Target, 1, 500)
	balance(t, at.Target, 2, 0)
}

// Nobody without the token resets anything, or reads who bought.
func TestScenariosNeedTheToken(t *testing.T) {
	at := scene(t)
	stranger := at.Target
	stranger.Token = "guess"
	for _, c := range []struct{ method, path string }{
		{http.MethodPut, "/coupons/1?count=5"}, {http.MethodPut, "/orders/1?amount=500"}, {http.MethodGet, "/coupons/1/orders"},
	} {
		if err := stranger.Call(t.Context(), c.method, c.path, nil, nil); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s %s: want a 403, got %v", c.method, c.path, err)
		}
	}
}

// postKey is a POST with an idempotency key.
func postKey(t *testing.T, url, key string) (r reply) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	must(t, err)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, json.Unmarshal(text, &r))
	r.HTTP = response.StatusCode
	return r
}

func balance(t *testing.T, at replica.Replica, order, want int) {
	t.Helper()
	var row struct{ Balance int }
	must(t, at.Call(t.Context(), http.MethodGet, fmt.Sprintf("/orders/%d", order), nil, &row))
	if row.Balance != want {
		t.Errorf("order %d: the balance is %d, want %d", order, row.Balance, want)
	}
}
