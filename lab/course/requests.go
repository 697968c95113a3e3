package course

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/player"
)

// request is a request of curl with its answer, which has a status.
type request struct {
	uri          string
	called, done time.Time
	answer       map[string]any
}

// next adds the requests of a command.
func (r *Results) next(c Command) (all []*request) {
	for i := range c.times {
		all = append(all, &request{uri: numbers.ReplaceAllString(c.URL.RequestURI(), strconv.Itoa(i+1)), answer: map[string]any{}})
	}
	r.requests = append(r.requests, all...)
	return all
}

func (r Runner) requests(ctx context.Context, c Command, all []*request) {
	var sent sync.WaitGroup
	for _, q := range all {
		if c.parallel {
			sent.Go(func() { r.request(ctx, c.Method, q) })
		} else {
			r.request(ctx, c.Method, q)
		}
	}
	sent.Wait()
}

// request prints and stores the answer. A failure is an answer as well: the class sees it.
func (r Runner) request(ctx context.Context, method string, q *request) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	q.called = time.Now()
	header := http.Header{"Accept-Language": {r.Lang}, "Connection": {"close"}} // no second request uses this client
	if method != http.MethodGet {
		header.Set("X-Lab-Token", r.Token)
	}
	status, _, body, err := api.Exchange(ctx, api.Direct(), method, r.Target+q.uri, header)
	q.done = time.Now()
	if err != nil {
		_, _ = fmt.Fprintf(r.Output, "%v\n", err)
		return
	}
	got := map[string]any{}
	if json.Unmarshal(body, &got) != nil {
		got["text"] = string(body)
	}
	got["status"] = float64(status)
	q.answer = got
	_, _ = fmt.Fprintf(r.Output, "%s\n", bytes.TrimSpace(body))
}

// record records the steps that the replicas take for the requests of curl, until the returned function is called.
// If a replica is missing, there is no recording, and the answers say why.
func (r Runner) record(ctx context.Context, commands []Command, results *Results) (done func()) {
	if len(r.Replicas) == 0 || !slices.ContainsFunc(commands, func(c Command) bool { return c.URL != nil }) {
		return func() {}
	}
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	start, stop, err := player.Steps(soon, r.Replicas, r.Token)
	if err != nil {
		return func() {}
	}
	return func() {
		_ = load.Sleep(ctx, 100*time.Millisecond) // a replica reports the release after its answer
		rec := history.Recording{Start: start, Events: withoutPrimitives(stop())}
		for _, q := range results.requests {
			if op, answered := q.op(start); answered {
				rec.Ops = append(rec.Ops, op)
			}
			if _, sold := q.answer["remaining"]; sold {
				rec.Stock = fullStock
			}
		}
		results.Recording = rec
	}
}

// withoutPrimitives leaves out the steps of requests for a primitive that nobody holds, such as a counter. Each holder
// of another primitive gets a key of its own: several may hold a semaphore, which is no violation.
func withoutPrimitives(events []history.Event) (kept []history.Event) {
	for _, e := range events {
		primitive := strings.HasPrefix(e.Strategy, "/") // in place of a strategy, its steps name the route
		held := slices.ContainsFunc(events, func(g history.Event) bool { return g.Owner == e.Owner && g.Step == api.Granted })
		if primitive {
			e.Key = e.Owner
		}
		if held || !primitive {
			kept = append(kept, e)
		}
	}
	return kept
}

// fullStock is the number of pieces with which each question begins.
const fullStock = 5000

// op returns a request that answered with an outcome as the record of its client. The steps of an owner who locks
// with one request and unlocks with another say enough.
func (q *request) op(start time.Time) (op history.Op, answered bool) {
	reason, answered := q.answer["outcome"].(string)
	if reason == string(api.Locked) || reason == string(api.Unlocked) || reason == string(api.Expired) {
		return op, false
	}
	op = history.Op{Call: q.called.Sub(start), Return: q.done.Sub(start), Outcome: history.Refused, Reason: reason}
	op.Replica, _ = q.answer["replica"].(string)
	op.Strategy, _ = q.answer["strategy"].(string)
	op.Owner, _ = q.answer["owner"].(string) // of a sale
	left, sold := q.answer["remaining"].(float64)
	if q.answer["status"] == float64(http.StatusOK) {
		op.Outcome = history.OK
	}
	if sold {
		op.Qty, op.Remaining, op.HasRemaining = 1, int(left), true
	}
	return op, answered
}
