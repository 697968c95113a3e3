package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestScenariosRefuseBadInput: invalid input gets a 4xx with the reason, and writes nothing.
func TestScenariosRefuseBadInput(t *testing.T) {
	at := labClients(t)
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?count=5", nil, nil))
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/orders/1?amount=500", nil, nil))
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/orders/2?amount=500", nil, nil))
	for _, c := range []struct {
		path, key string
		status    int
		names     string // the parameter or the outcome in the answer
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
		{"/orders/1/recharge?amount=500&guard=key", `""`, 400, "Idempotency-Key"},
		{"/orders/1/recharge?amount=500&guard=key", strings.Repeat("k", 65), 400, "Idempotency-Key"},
		{"/orders/1/recharge?amount=501&guard=key", "new", 422, "wrong_amount"},
	} {
		r := post(t.Context(), at.Target.HTTP, at.Target.Base+c.path, c.key)
		if r.HTTP != c.status || r.Parameter != c.names && r.Outcome != c.names || r.Detail == "" {
			t.Errorf("%s, key %q: want %d that names %s, got %+v", c.path, c.key, c.status, c.names, r)
		}
	}
	if now := couponNow(t, at.Target, 1); len(now.users) != 0 || now.Count != 5 {
		t.Errorf("coupons were given: %+v", now)
	}
	balance(t, at.Target, 1, 0)

	// The rejected requests must not have stored the idempotency key "new", so it can still be
	// used.
	credit := at.Target.Base + "/orders/%d/recharge?guard=key&work=0s&amount=%d"
	for i, c := range []struct {
		order, amount int
		status        int
		outcome       string
	}{
		{1, 500, 200, "credited"},
		{1, 500, 200, "credited_before"},
		{1, 501, 422, "key_reused"}, // another amount
		{2, 500, 422, "key_reused"}, // another order
	} {
		if r := post(t.Context(), at.Target.HTTP, fmt.Sprintf(credit, c.order, c.amount), "new"); r.HTTP != c.status || r.Outcome != c.outcome {
			t.Errorf("request %d with the key: want %d %s, got %+v", i+1, c.status, c.outcome, r)
		}
	}
	balance(t, at.Target, 1, 500)
	balance(t, at.Target, 2, 0)
}

// post sends one request, with an idempotency key unless key is empty. If there is no answer,
// r.HTTP is 0 and r.Detail is the error.
func post(ctx context.Context, client *http.Client, url, key string) (r reply) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return reply{Detail: err.Error()}
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{Detail: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
		r.Detail = err.Error()
	}
	r.HTTP = response.StatusCode
	return r
}

// summary returns the status and the outcome of a reply, in one line.
func (r reply) summary() string { return fmt.Sprintf("%d %s", r.HTTP, r.Outcome) }
