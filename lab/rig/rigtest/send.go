package rigtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"oversell/api"
)

// Send sends a request with the lab's token, and decodes an answer in JSON into out. Each request has a
// connection of its own, because a replica that was stopped has closed its old ones.
func Send(ctx context.Context, method, url, token string, out any) (status int, header http.Header, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}
	status, header, body, err := api.Exchange(ctx, client, method, url, http.Header{api.TokenHeader: {token}})
	if err == nil && strings.Contains(header.Get("Content-Type"), "json") {
		if err = json.Unmarshal(body, out); err != nil {
			err = fmt.Errorf("%w in %s", err, body)
		}
	}
	return status, header, err
}
