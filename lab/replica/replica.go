// Package replica speaks to one replica of the service as a lab may: beside the sales it
// sets the stock and holds requests up at their steps.
package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
)

// Replica is one replica, at Base, of a lab with that token.
type Replica struct {
	Base  string
	Token string
	HTTP  *http.Client
}

// Stopped is an owner that is held up at a step. Since tells two stops apart.
type Stopped struct {
	Owner string    `json:"owner"`
	Key   string    `json:"key"`
	Step  string    `json:"step"`
	Fence int64     `json:"fence"`
	Since time.Time `json:"since"`
}

// Key is what a sale of the product locks.
func Key(product int64) string { return "stock:" + strconv.FormatInt(product, 10) }

// Stock puts pieces of a product on the shelf, a new one if need be, and clears what was
// left of it.
func (r Replica) Stock(ctx context.Context, product int64, pieces int) error {
	return r.Call(ctx, http.MethodPut, fmt.Sprintf("/stock/%d?new=true&count=%d", product, pieces), nil, nil)
}

// Count is what is left of the product, as the strategy counts it.
func (r Replica) Count(ctx context.Context, strategy string, product int64) (int, error) {
	var item struct {
		Count int `json:"count"`
	}
	err := r.Call(ctx, http.MethodGet, fmt.Sprintf("/stock/%d?strategy=%s", product, url.QueryEscape(strategy)), nil, &item)
	return item.Count, err
}

// Buy sends one request, and judges its answer. start is what its times count from.
func (r Replica) Buy(ctx context.Context, strategy string, product int64, more url.Values, start time.Time) history.Op {
	query := url.Values{"strategy": {strategy}, "product": {strconv.FormatInt(product, 10)}}
	for name, values := range more {
		query[name] = values
	}
	op := load.One(ctx, r.HTTP, r.Base+"/check/lock?"+query.Encode(), start)
	op.Strategy = strategy
	return op
}

// Stop arms a failpoint: the next so many times that somebody takes the step (any one,
// if it is empty) with this strategy and product, it is held up there. Requests heed the
// failpoints that are armed when they come.
func (r Replica) Stop(ctx context.Context, strategy string, product int64, step string, times int) error {
	body := map[string]any{"strategy": strategy, "product": product, "step": step, "times": times}
	return r.Call(ctx, http.MethodPost, "/lab/failpoints", body, nil)
}

// StopAt is Stop for what is no product: whoever takes the step under the key, such as
// "order:7", is held up.
func (r Replica) StopAt(ctx context.Context, key, step string, times int) error {
	body := map[string]any{"key": key, "step": step, "times": times}
	return r.Call(ctx, http.MethodPost, "/lab/failpoints", body, nil)
}

// Stopped are all who are held up here.
func (r Replica) Stopped(ctx context.Context) ([]Stopped, error) {
	var state struct {
		Stopped []Stopped `json:"stopped"`
	}
	err := r.Call(ctx, http.MethodGet, "/lab/failpoints", nil, &state)
	return state.Stopped, err
}

// LetGo lets one who is held up go on.
func (r Replica) LetGo(ctx context.Context, owner string) error {
	return r.Call(ctx, http.MethodPost, "/lab/stopped/"+url.PathEscape(owner)+"/go", nil, nil)
}

// GoOn lets everybody go on, and disarms what was not reached.
func (r Replica) GoOn(ctx context.Context) error {
	return r.Call(ctx, http.MethodDelete, "/lab/failpoints", nil, nil)
}

// Ready is nil when the replica reaches all its backends.
func (r Replica) Ready(ctx context.Context) error {
	return r.Call(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Call asks for something, and reads the JSON of a 200 into answer, if that is not nil.
func (r Replica) Call(ctx context.Context, method, path string, body, answer any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		in = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.Base+path, in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	request.Header.Set("X-Lab-Token", r.Token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	const enough = 4 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, enough))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", request.URL, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s: %s", method, request.URL, response.Status, bytes.TrimSpace(text))
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: %w", request.URL, err)
	}
	return nil
}
