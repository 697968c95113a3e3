package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"oversell/api"
	"oversell/lab/history"
)

// Answer is the service's answer to a client, with the fields that the scenarios read.
type Answer struct {
	Status int `json:"-"`
	// Outcome is unknown also when no answer arrived: the request may have been executed.
	Outcome string `json:"outcome"`
	Detail  string `json:"detail"`
	Replica string `json:"replica"`
	// Order is the id of a coupon's order.
	Order int64 `json:"order"`
	// Number is the number of a ticket.
	Number int `json:"number"`
	// Retries counts the attempts that failed because another request wrote first.
	Retries int `json:"retries"`
}

const unknown = string(api.Unknown)

// post sends one request, once. headers alternate names and values.
func post(ctx context.Context, to api.Client, path string, headers ...string) Answer {
	a, err := tryPost(ctx, to, path, headers)
	if err != nil {
		return Answer{Status: a.Status, Outcome: unknown, Detail: err.Error()}
	}
	return a
}

func tryPost(ctx context.Context, to api.Client, path string, headers []string) (a Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Base+path, http.NoBody)
	if err != nil {
		return a, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := to.HTTP.Do(request)
	if err != nil {
		return a, err
	}
	defer func() { _ = response.Body.Close() }()
	const maxBytes = 64 << 10
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBytes))
	if err != nil {
		return a, err
	}
	a.Status = response.StatusCode
	if err := json.Unmarshal(text, &a); err != nil || a.Outcome == "" {
		return a, fmt.Errorf("not an answer of the service: %.120s", text)
	}
	return a, nil
}

// op converts the answer to a request for one piece to an operation of a history.
func (a Answer) op() history.Op {
	op := history.Op{Qty: 1, Reason: a.Outcome, Status: a.Status, Replica: a.Replica, Retries: a.Retries, Outcome: history.Refused}
	switch a.Outcome {
	case history.Sold:
		op.Outcome = history.OK
	case unknown:
		op.Outcome = history.Unknown
	}
	return op
}

// failed reports whether the client cannot know if its request was executed.
func (a Answer) failed() bool {
	return a.Outcome == unknown || a.Status >= http.StatusInternalServerError
}

// concurrently calls f for 0 to n-1 at the same time, and returns the results in that order.
func concurrently[A any](n int, f func(i int) A) []A {
	results := make([]A, n)
	var calls sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		calls.Go(func() {
			<-start
			results[i] = f(i)
		})
	}
	close(start)
	calls.Wait()
	return results
}
