package stepper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/rig"
)

// Pieces are on the shelf when a round begins.
const Pieces = 10

// patience is how long a request may wait for the lock: as long as the service allows,
// for a class takes its time.
const patience = "60s"

// Lab is a running lab in which one strategy is stepped through.
type Lab struct {
	Strategy string

	replicas []string // of A and of B
	token    string
	http     *http.Client
	start    time.Time
	products int64 // numbered on: no round finds what an earlier one left
}

// Open takes the first two replicas of a lab for the clients A and B.
func Open(addrs rig.Addresses, strategy string) (*Lab, error) {
	if len(addrs.Replicas) < 2 {
		return nil, errors.New("stepper: two clients need two replicas")
	}
	return &Lab{
		Strategy: strategy, replicas: addrs.Replicas[:2], token: addrs.Token,
		http: &http.Client{Transport: &http.Transport{}}, start: time.Now(), products: 7000,
	}, nil
}

// stocked puts the pieces of a new product on the shelf.
func (l *Lab) stocked(ctx context.Context) (product int64, err error) {
	l.products++
	where := fmt.Sprintf("%s/stock/%d?new=true&count=%d", l.replicas[A], l.products, Pieces)
	return l.products, l.call(ctx, http.MethodPut, where, nil, nil)
}

// count is what is left of the product, as the strategy counts it.
func (l *Lab) count(ctx context.Context, product int64) (int, error) {
	var item struct {
		Count int `json:"count"`
	}
	where := fmt.Sprintf("%s/stock/%d?strategy=%s", l.replicas[A], product, url.QueryEscape(l.Strategy))
	return item.Count, l.call(ctx, http.MethodGet, where, nil, &item)
}

// arm has the replica stop whoever takes any step on the product.
func (l *Lab) arm(ctx context.Context, who Who, product int64) error {
	const each = 10_000 // steps: more than any request takes
	body := map[string]any{"strategy": l.Strategy, "product": product, "times": each}
	return l.call(ctx, http.MethodPost, l.replicas[who]+"/lab/failpoints", body, nil)
}

// disarm lets everybody on the replica go on, and stops nobody any more.
func (l *Lab) disarm(ctx context.Context, who Who) error {
	return l.call(ctx, http.MethodDelete, l.replicas[who]+"/lab/failpoints", nil, nil)
}

// stop is where a client is stopped. Since tells apart two stops at the same step.
type stop struct {
	Owner string    `json:"owner"`
	Key   string    `json:"key"`
	Step  string    `json:"step"`
	Fence int64     `json:"fence"`
	Since time.Time `json:"since"`
}

// stopped says where the client is stopped; ok is false where it is not.
func (l *Lab) stopped(ctx context.Context, who Who, product int64) (at stop, ok bool, err error) {
	var state struct {
		Stopped []stop `json:"stopped"`
	}
	err = l.call(ctx, http.MethodGet, l.replicas[who]+"/lab/failpoints", nil, &state)
	for _, s := range state.Stopped {
		if s.Key == "stock:"+strconv.FormatInt(product, 10) {
			return s, true, err
		}
	}
	return stop{}, false, err
}

// letGo lets one who is stopped go on to the next step.
func (l *Lab) letGo(ctx context.Context, who Who, owner string) error {
	return l.call(ctx, http.MethodPost, l.replicas[who]+"/lab/stopped/"+url.PathEscape(owner)+"/go", nil, nil)
}

// buy is the whole request of a client.
func (l *Lab) buy(ctx context.Context, who Who, product int64) history.Op {
	query := url.Values{"strategy": {l.Strategy}, "product": {strconv.FormatInt(product, 10)}, "wait": {patience}}
	return load.One(ctx, l.http, l.replicas[who]+"/check/lock?"+query.Encode(), l.start)
}

// call asks the lab for something.
func (l *Lab) call(ctx context.Context, method, where string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("stepper: %s: %w", where, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, where, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("stepper: %s: %w", where, err)
	}
	request.Header.Set("X-Lab-Token", l.token)
	response, err := l.http.Do(request)
	if err != nil {
		return fmt.Errorf("stepper: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("stepper: %s: %w", where, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("stepper: %s %s: %s: %s", method, where, response.Status, bytes.TrimSpace(text))
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("stepper: %s: %w", where, err)
	}
	return nil
}
