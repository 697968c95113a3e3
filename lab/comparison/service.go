package comparison

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

	"oversell/lab/load"
)

// product is the product of the tutorial.
const product = 1

// ErrToken marks a token that the service rejected.
var ErrToken = errors.New("the token was rejected")

// Card describes a strategy, as far as a comparison needs it.
type Card struct {
	ID   string `json:"id"`
	Safe bool   `json:"safe"` // claims that no update is lost, with any number of replicas
	Core bool   `json:"core"` // runs if no strategy is named
	Slow bool   `json:"slow"` // sleeps between two attempts
}

// item is the stock of a product.
type item struct {
	Count    int      `json:"count"`
	Version  int64    `json:"version"`
	Fence    int64    `json:"fence"`
	Flushes  *int64   `json:"flushes"` // of the strategy's Redis servers so far; nil: not known
	Warnings []string `json:"warnings"`
}

// service is the service under test: its URL and a token.
type service struct {
	base  *url.URL
	token string
	http  *http.Client
}

func openService(target, token string) (*service, error) {
	base, err := load.ParseTarget(target)
	if err != nil {
		return nil, err
	}
	// Directly to the target, past any proxy, as the load.
	return &service{base: base, token: token, http: &http.Client{Transport: &http.Transport{}, Timeout: 15 * time.Second}}, nil
}

func (s *service) close() { s.http.CloseIdleConnections() }

func (s *service) strategies(ctx context.Context) ([]Card, error) {
	var cards []Card
	if err := s.call(ctx, http.MethodGet, nil, &cards, "strategies", ""); err != nil {
		return nil, err
	}
	if len(cards) == 0 {
		return nil, fmt.Errorf("%s has no strategies", s.base)
	}
	return cards, nil
}

// stock returns the stock in the row, or where the strategy keeps it instead.
func (s *service) stock(ctx context.Context, strategy string) (item, error) {
	var it item
	err := s.call(ctx, http.MethodGet, nil, &it, "stock/"+strconv.Itoa(product), "strategy="+url.QueryEscape(strategy))
	return it, err
}

// reset sets the stock and reads it back. Sales of another user of this lab would spoil the
// verdict.
func (s *service) reset(ctx context.Context, strategy string, count int) (got item, err error) {
	var set item
	body, err := json.Marshal(map[string]int{"count": count})
	if err != nil {
		return got, fmt.Errorf("reset the stock: %w", err)
	}
	if err := s.call(ctx, http.MethodPut, body, &set, "stock/"+strconv.Itoa(product), ""); err != nil {
		return got, fmt.Errorf("reset the stock: %w", err)
	}
	got, err = s.stock(ctx, strategy)
	if err != nil {
		return got, fmt.Errorf("read the stock back: %w", err)
	}
	if got.Count != count || got.Version != 0 || got.Fence != 0 {
		return got, fmt.Errorf("the stock was not reset: count %d, version %d, fence %d instead of %d, 0, 0 (does another client use this lab?)",
			got.Count, got.Version, got.Fence, count)
	}
	got.Warnings = set.Warnings
	return got, nil
}

// refusal has the fields of a problem+json that explain it.
type refusal struct {
	Detail  string `json:"detail"`
	Backend string `json:"backend"`
}

// call sends a request and reads the JSON of its answer into answer.
func (s *service) call(ctx context.Context, method string, body []byte, answer any, path, query string) error {
	where := s.base.JoinPath(path)
	where.RawQuery = query
	address := where.String()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("request %s: %w", address, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Lab-Token", s.token)
	}
	res, err := s.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the lab at %s: %w; start one with: oversell lab", s.base, err)
	}
	defer func() { _ = res.Body.Close() }()
	const enough = 4 << 20
	text, err := io.ReadAll(io.LimitReader(res.Body, enough))
	if err != nil {
		return fmt.Errorf("read %s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK {
		return s.refused(address, res.StatusCode, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s does not answer like a replica of oversell: %w", address, err)
	}
	return nil
}

func (s *service) refused(address string, status int, text []byte) error {
	var why refusal
	// Without a problem+json there is only the status.
	if err := json.Unmarshal(text, &why); err != nil || why.Detail == "" {
		why.Detail = http.StatusText(status)
	}
	if status == http.StatusForbidden {
		return fmt.Errorf("%w: %s; pass the lab's with --token or LAB_TOKEN", ErrToken, why.Detail)
	}
	if why.Backend != "" {
		return fmt.Errorf("%s: %s is unavailable: %s", address, why.Backend, why.Detail)
	}
	return fmt.Errorf("%s: HTTP %d: %s", address, status, why.Detail)
}
