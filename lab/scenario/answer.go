package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"oversell/api"
	"oversell/lab/history"
)

// Answer is the service's answer to a client, with the fields that the scenarios read.
type Answer struct {
	Status int `json:"-"`
	// Outcome is "unknown" also if no answer arrived, because the request may have been executed.
	Outcome string `json:"outcome"`
	Detail  string `json:"detail"`
	// Order is the id of a coupon's order.
	Order int64 `json:"order"`
	// Number is the number of a ticket.
	Number int `json:"number"`
}

const (
	unknown = string(api.Unknown)
	// attempts limits how often a request is sent that surely changed nothing.
	attempts = 20
)

func post(ctx context.Context, to api.Client, path string) Answer {
	return postWith(ctx, to, path, nil)
}

func postWith(ctx context.Context, to api.Client, path string, header http.Header) (a Answer) {
	status, _, body, err := api.Exchange(ctx, to.HTTP, http.MethodPost, to.Base+path, header)
	if err != nil {
		return Answer{Outcome: unknown, Detail: err.Error()}
	}
	if err := json.Unmarshal(body, &a); err != nil || a.Outcome == "" {
		a = Answer{Outcome: unknown, Detail: fmt.Sprintf("not an answer of the service: %.120s", body)}
	}
	a.Status = status
	return a
}

func (a Answer) op() history.Op {
	op := history.Op{Qty: 1, Reason: a.Outcome, Outcome: history.Refused}
	switch a.Outcome {
	case history.Sold:
		op.Outcome = history.OK
	case unknown:
		op.Outcome = history.Unknown
	}
	return op
}

// failed reports whether the outcome is unknown or the status is an error of the server (5xx).
func (a Answer) failed() bool {
	return a.Outcome == unknown || a.Status >= http.StatusInternalServerError
}

// unavailable returns an error if a server was unavailable: then what was not sold says nothing about the guard.
func unavailable(answers []Answer) error {
	for _, a := range answers {
		if a.Outcome == string(api.Unavailable) {
			return fmt.Errorf("a request failed: %d %s: %s", a.Status, a.Outcome, a.Detail)
		}
	}
	return nil
}

// insist sends a request again that surely changed nothing, like a customer who reads "try again".
func insist(ctx context.Context, send func() Answer) (a Answer) {
	for range attempts {
		a = send()
		if !a.failed() || a.Outcome == unknown || ctx.Err() != nil {
			break
		}
	}
	return a
}

// untilSoldOut limits its requests to most: with a wrong guard, "sold out" may never come.
func untilSoldOut(ctx context.Context, most int, send func() Answer) (answers []Answer) {
	for range most {
		a := send()
		answers = append(answers, a)
		if a.Outcome == history.SoldOut || ctx.Err() != nil {
			break
		}
	}
	return answers
}

// concurrently calls f(0) to f(n-1) at the same time, and returns their results in this order.
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
