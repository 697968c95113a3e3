package handlers_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig/rigtest"
)

// couponState is what MySQL stores about coupon 1.
type couponState struct {
	Initial, Count int
	users          map[int64]int // the number of orders of each user
}

func couponNow(t *testing.T, at api.Client, id int) couponState {
	t.Helper()
	var s couponState
	must(t, at.Call(t.Context(), http.MethodGet, fmt.Sprintf("/coupons/%d", id), nil, &s))
	var orders []struct{ User int64 }
	must(t, at.Call(t.Context(), http.MethodGet, fmt.Sprintf("/coupons/%d/orders", id), nil, &orders))
	s.users = map[int64]int{}
	for _, o := range orders {
		s.users[o.User]++
	}
	if s.Initial-s.Count != len(orders) {
		t.Errorf("%d of %d coupons are left, and there are %d orders", s.Count, s.Initial, len(orders))
	}
	return s
}

// TestReplicaDiesInACoupon kills a replica before the insert of an order, before the commit, or
// before the release of the lock. The user repeats the request, and gets exactly one order and one
// coupon. The killed replica's lock blocks the user no longer than its lease lasts. Each case has
// its own coupon, and all die together.
func TestReplicaDiesInACoupon(t *testing.T) {
	const lease = 3 * time.Second
	type dying struct{ guard, step, then string } // then is the outcome of the user's last request
	var cases []dying
	for _, guard := range []string{"redis", "redis-unique", "unique"} {
		cases = append(cases, dying{guard, "granted", "ordered"}, dying{guard, "read", "ordered"}, dying{guard, "written", "already_taken"})
	}
	// All coupons get their order ids from one row. Each request that is paused after the insert locks it, so
	// the next one waits for seconds.
	cases = append(cases, dying{"redis-unique", "inserted", "ordered"})
	if rigtest.IsNightly() {
		cases = append(cases, dying{"redis", "inserted", "ordered"}, dying{"unique", "inserted", "ordered"})
	}
	at := labClients(t)
	killed, survivor := at.Replicas[1], at.Replicas[0]
	// A lock of an earlier test with the same user might not have expired.
	user := time.Now().UnixMicro()
	var paths []string
	for i, c := range cases {
		must(t, at.Target.Call(t.Context(), http.MethodPut, fmt.Sprintf("/coupons/%d?count=5", i+1), nil, nil))
		must(t, killed.Arm(t.Context(), api.Failpoint{Key: fmt.Sprintf("coupon:%d:user:%d", i+1, user), Step: api.Step(c.step)}))
		paths = append(paths, fmt.Sprintf("/coupons/%d/orders?guard=%s&user=%d&lease=%v", i+1, c.guard, user, lease))
	}
	killPaused(t, killed, paths)
	died := time.Now()
	for i, c := range cases {
		what := c.guard + " " + c.step
		rigtest.Eventually(t, what+": the user's request is executed", func() (bool, string) {
			since := time.Since(died)
			r := ask(t, http.MethodPost, survivor.Base, paths[i])
			if r.Outcome == "running" && since > lease {
				t.Errorf("%s: %v after the kill, with a lease of %v: %+v", what, since, lease, r)
			}
			if r.Outcome != "running" && r.Outcome != c.then {
				t.Errorf("%s: want %s, got %+v", what, c.then, r)
			}
			return r.Outcome != "running", fmt.Sprintf("%+v", r)
		})
		if now := couponNow(t, survivor, i+1); len(now.users) != 1 || now.users[user] != 1 {
			t.Errorf("%s: orders by user: %v, want one of user %d", what, now.users, user)
		}
	}
	startAgain(t, killed)
}

// killPaused sends requests to replica-2, one after the other. A failpoint pauses each there. Then it
// kills the replica.
func killPaused(t *testing.T, replica api.Client, paths []string) {
	t.Helper()
	answers := make(chan reply, len(paths))
	for i, path := range paths {
		go func() { answers <- post(t.Context(), replica.HTTP, replica.Base+path, fmt.Sprintf("retry-%d", i)) }()
		awaitPaused(t, replica, i+1)
	}
	server(t, "replica-2").Kill()
	for range paths {
		if r := <-answers; r.HTTP != 0 {
			t.Errorf("a request to the killed replica was answered: %+v", r)
		}
	}
}

// startAgain starts replica-2, and waits until it is ready.
func startAgain(t *testing.T, replica api.Client) {
	t.Helper()
	must(t, server(t, "replica-2").Start(t.Context()))
	rigtest.Eventually(t, "the replica is ready", func() (bool, string) {
		err := replica.Ready(t.Context())
		return err == nil, fmt.Sprint(err)
	})
}

// TestCouponAnswers checks the HTTP status of each outcome of an order.
func TestCouponAnswers(t *testing.T) {
	at := labClients(t)
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
	must(t, first.Arm(t.Context(), api.Failpoint{Key: "coupon:1:user:1", Step: "read"}))
	answers := make(chan reply, 1)
	go func() {
		r, _ := exchange(t.Context(), http.MethodPost, first.Base, "/coupons/1/orders?guard=redis&user=1")
		answers <- r
	}()
	awaitPaused(t, first, 1)
	running := order(1, 1)
	want(running, http.StatusTooManyRequests, "running")
	if running.RetryAfter == "" {
		t.Error("Retry-After is missing")
	}
	must(t, first.ResumeAll(t.Context()))
	want(<-answers, http.StatusCreated, "ordered")
	want(order(1, 1), http.StatusConflict, "already_taken")
	want(order(1, 2), http.StatusCreated, "ordered")
	want(order(1, 3), http.StatusConflict, "sold_out")
}

// TestCouponsSellOut checks that 100 of many users get the 100 coupons, and the others sold_out.
func TestCouponsSellOut(t *testing.T) {
	at, users := labClients(t), 400
	if rigtest.IsNightly() {
		users = 2000
	}
	for _, guard := range []string{"redis", "unique", "redis-unique"} {
		must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?count=100", nil, nil))
		answers := make(chan string, users)
		for user := 1; user <= users; user++ {
			go func() {
				url := fmt.Sprintf("%s/coupons/1/orders?guard=%s&user=%d", at.Target.Base, guard, user)
				answer := "503 unavailable" // no connection in time on a busy machine: surely nothing was taken
				for attempt := 0; attempt < 20 && answer == "503 unavailable"; attempt++ {
					answer = post(t.Context(), at.Target.HTTP, url, "").summary()
				}
				answers <- answer
			}()
		}
		counted := map[string]int{}
		for range users {
			counted[<-answers]++
		}
		if counted["201 ordered"] != 100 || counted["409 sold_out"] != users-100 {
			t.Errorf("%s: %v, want 100 ordered and %d sold_out", guard, counted, users-100)
		}
		if now := couponNow(t, at.Target, 1); len(now.users) != 100 || now.Count != 0 {
			t.Errorf("%s: %d users have a coupon, %d are left", guard, len(now.users), now.Count)
		}
	}
}

// TestCouponLockLost deletes a request's lock in Redis just before the request writes its order. A
// second request of the same user then succeeds. Now only the unique key in MySQL can prevent that
// the first request writes another order.
func TestCouponLockLost(t *testing.T) {
	client := singleRedis(t)
	at := labClients(t)
	for guard, want := range map[string]int{"redis": 2, "redis-unique": 1} {
		must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?count=5", nil, nil))
		key := "coupon:1:user:1"
		path := fmt.Sprintf("/coupons/1/orders?user=1&guard=%s", guard)
		must(t, at.Replicas[0].Arm(t.Context(), api.Failpoint{Key: key, Step: "writing"}))
		first := make(chan string, 1)
		go func() { first <- post(t.Context(), at.Target.HTTP, at.Replicas[0].Base+path, "").summary() }()
		awaitPaused(t, at.Replicas[0], 1)
		if n, err := client.Del(t.Context(), "redis:"+key).Result(); err != nil || n != 1 {
			t.Errorf("%s: %d locks deleted, %v, want that of the first request", guard, n, err)
		}
		if second := post(t.Context(), at.Target.HTTP, at.Replicas[1].Base+path, "").summary(); second != "201 ordered" {
			t.Errorf("%s: the second request: %s", guard, second)
		}
		must(t, at.Replicas[0].ResumeAll(t.Context()))
		answer := <-first
		if now := couponNow(t, at.Target, 1); now.users[1] != want {
			t.Errorf("%s: user 1 has %d orders, want %d; the first request: %s", guard, now.users[1], want, answer)
		}
		if want == 1 && answer != "409 already_taken" {
			t.Errorf("%s: the first request: %s", guard, answer)
		}
	}
}

// TestOrderIDsRise checks that each order has a higher id than the previous order, over all
// replicas and coupons. The id of an order contains its time.
func TestOrderIDsRise(t *testing.T) {
	at := labClients(t)
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/1?count=100", nil, nil))
	must(t, at.Target.Call(t.Context(), http.MethodPut, "/coupons/2?count=100", nil, nil))
	last := int64(0)
	for user := 1; user <= 30; user++ {
		before, at := time.Now(), at.Replicas[user%len(at.Replicas)]
		order := post(t.Context(), at.HTTP, fmt.Sprintf("%s/coupons/%d/orders?user=%d", at.Base, 1+user%2, user), "")
		if order.Order <= last {
			t.Errorf("user %d: order %d after %d", user, order.Order, last)
		}
		// An order's time is the start of a MySQL statement, so allow a difference of one second.
		if order.Made.Before(before.Add(-time.Second)) || order.Made.After(time.Now().Add(time.Second)) {
			t.Errorf("user %d: made at %v, requested at %v", user, order.Made, before)
		}
		last = order.Order
	}
}
