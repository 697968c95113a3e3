package rigtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"oversell/api"
)

// Send sends a request with the lab's token, and decodes an answer in JSON into out. Each request has a
// connection of its own, because a replica that was stopped has closed its old ones.
func Send(ctx context.Context, method, url, token string, out any) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(api.TokenHeader, token)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && strings.Contains(answer.Header.Get("Content-Type"), "json") {
		if err = json.Unmarshal(body, out); err != nil {
			err = fmt.Errorf("%w in %s", err, body)
		}
	}
	return answer, err
}
