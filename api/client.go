package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// TokenHeader carries the lab's token. A form or an image on another web site cannot set it.
const TokenHeader = "X-Lab-Token" //nolint:gosec // a name, not a secret

// Client sends requests to one replica, or to any replica through nginx.
type Client struct {
	// Base is the address of the replica or of nginx, such as http://127.0.0.1:8000.
	Base string
	// Token is the lab's token. It may be empty for routes that require no token.
	Token string
	HTTP  *http.Client
}

// Direct returns a client that sends nothing to the proxy of the environment (HTTP_PROXY): a proxy does not know
// the names of containers.
func Direct() *http.Client {
	return &http.Client{Transport: &http.Transport{IdleConnTimeout: time.Minute}}
}

// Error is the error for an answer whose status is not 200.
type Error struct {
	Method, URL string
	Status      int
	// Problem is the zero value if the answer is not an application/problem+json.
	Problem Problem
	// Text is the beginning of the answer's body.
	Text string
}

// Error names the request, the status, and the service's explanation.
func (e *Error) Error() string {
	why := e.Problem.Detail
	if why == "" {
		why = e.Text
	}
	if hint := e.Problem.Hint; hint != "" {
		why += ". " + hint
	}
	return fmt.Sprintf("%s %s: %d %s: %s", e.Method, e.URL, e.Status, http.StatusText(e.Status), why)
}

// Cards returns the cards of all strategies, in the order in which they are taught.
func (c Client) Cards(ctx context.Context) (cards []Card, err error) {
	err = c.Call(ctx, http.MethodGet, "/strategies", nil, &cards)
	return cards, err
}

// ResetStock sets the stock, and deletes the locks of the product. Stock.Warnings lists failures.
func (c Client) ResetStock(ctx context.Context, product int64, count int) (s Stock, err error) {
	err = c.Call(ctx, http.MethodPut, fmt.Sprintf("/stock/%d", product), map[string]int{"count": count}, &s)
	return s, err
}

// SetStock does what ResetStock does. If the product does not exist, SetStock creates it first.
func (c Client) SetStock(ctx context.Context, product int64, count int) error {
	return c.Call(ctx, http.MethodPut, fmt.Sprintf("/stock/%d?new=true&count=%d", product, count), nil, nil)
}

// Stock returns the stock of a product from the backend in which the strategy keeps the stock.
func (c Client) Stock(ctx context.Context, strategy string, product int64) (s Stock, err error) {
	err = c.Call(ctx, http.MethodGet, fmt.Sprintf("/stock/%d?strategy=%s", product, url.QueryEscape(strategy)), nil, &s)
	return s, err
}

// Count returns only the field Count of the answer of Stock.
func (c Client) Count(ctx context.Context, strategy string, product int64) (int, error) {
	s, err := c.Stock(ctx, strategy, product)
	return s.Count, err
}

// Arm adds a failpoint for the requests that arrive after this call.
func (c Client) Arm(ctx context.Context, f Failpoint) error {
	return c.Call(ctx, http.MethodPost, "/lab/failpoints", f, nil)
}

// Failpoints returns the failpoints of the replica, and the requests that they act on.
func (c Client) Failpoints(ctx context.Context) (f Failpoints, err error) {
	err = c.Call(ctx, http.MethodGet, "/lab/failpoints", nil, &f)
	return f, err
}

// Paused returns the requests that are paused at a failpoint now.
func (c Client) Paused(ctx context.Context) ([]Paused, error) {
	f, err := c.Failpoints(ctx)
	return f.Paused, err
}

// Resume resumes the paused request that has this owner.
func (c Client) Resume(ctx context.Context, owner string) error {
	return c.Call(ctx, http.MethodPost, "/lab/stopped/"+url.PathEscape(owner)+"/go", nil, nil)
}

// ResumeAll resumes all paused requests and disarms the failpoints.
func (c Client) ResumeAll(ctx context.Context) error {
	return c.Call(ctx, http.MethodDelete, "/lab/failpoints", nil, nil)
}

// Ready returns nil when the replica reaches all its backends.
func (c Client) Ready(ctx context.Context) error {
	return c.Call(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Follow calls receive for each event of the stream /events. c.HTTP must have no time-out.
func (c Client) Follow(ctx context.Context, receive func(kind string, data []byte)) error {
	response, err := c.send(ctx, http.MethodGet, "/events", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		_, err := read(response)
		return err
	}
	kind, lines := "", bufio.NewScanner(response.Body)
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ":"); name {
		case "event":
			kind = strings.TrimSpace(value)
		case "data":
			receive(kind, []byte(value))
		}
	}
	return lines.Err()
}

// Exchange sends a request without a body, and reads at most 64 KiB of the answer.
func Exchange(
	ctx context.Context, client *http.Client, method, address string, header http.Header,
) (status int, answered http.Header, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return 0, nil, nil, err
	}
	maps.Copy(request.Header, header)
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	const maxBytes = 64 << 10
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxBytes))
	return answer.StatusCode, answer.Header, body, err
}

// Call sends and decodes JSON. body and answer may be nil. A status except 200 gives an *Error.
func (c Client) Call(ctx context.Context, method, path string, body, answer any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := read(response)
	if err != nil || answer == nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s does not answer like a replica of oversell: %w", response.Request.URL, err)
	}
	return nil
}

func (c Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		in = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Token != "" {
		request.Header.Set(TokenHeader, c.Token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.HTTP.Do(request)
}

func read(response *http.Response) ([]byte, error) {
	const most = 4 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", response.Request.URL, err)
	}
	if response.StatusCode == http.StatusOK {
		return text, nil
	}
	e := &Error{Method: response.Request.Method, URL: response.Request.URL.String(), Status: response.StatusCode}
	if json.Unmarshal(text, &e.Problem) != nil {
		e.Problem = Problem{}
	}
	const excerpt = 200
	e.Text = string(bytes.TrimSpace(text[:min(len(text), excerpt)]))
	return nil, e
}
