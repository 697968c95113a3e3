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

// Answer is what a customer was told: the part that all routes have. Outcome is the
// service's word; "unknown" also where no answer came, and the deed may be done.
type Answer struct {
	Status  int    `json:"-"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail"`
	Replica string `json:"replica"`
	// Order is the number of what was bought or credited, where there is one.
	Order int64 `json:"order"`
	// Number is what is printed on a ticket.
	Number int `json:"number"`
	// Retries are the attempts that a rival beat.
	Retries int `json:"retries"`
}

// unknown is the outcome of who was told nothing.
const unknown = "unknown"

// post sends one customer's request, once, with header lines of its own ("Name", "value", ...).
func post(ctx context.Context, to api.Client, path string, header ...string) Answer {
	lost := func(err error) Answer { return Answer{Outcome: unknown, Detail: err.Error()} }
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Base+path, http.NoBody)
	if err != nil {
		return lost(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := to.HTTP.Do(request)
	if err != nil {
		return lost(err)
	}
	defer func() { _ = response.Body.Close() }()
	const enough = 64 << 10
	text, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil {
		return lost(err)
	}
	a := Answer{Status: response.StatusCode}
	if err := json.Unmarshal(text, &a); err != nil || a.Outcome == "" {
		return Answer{Status: response.StatusCode, Outcome: unknown, Detail: fmt.Sprintf("not the shop's: %.120s", text)}
	}
	return a
}

// op is the answer as a history keeps it: one piece was asked for.
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

// failed reports whether the shop left the customer without a clear answer.
func (a Answer) failed() bool {
	return a.Outcome == unknown || a.Status >= http.StatusInternalServerError
}

// storm lets n customers ask at once, and returns what each of them got.
func storm[A any](n int, ask func(i int) A) []A {
	answers := make([]A, n)
	var crowd sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		crowd.Go(func() {
			<-start
			answers[i] = ask(i)
		})
	}
	close(start)
	crowd.Wait()
	return answers
}
