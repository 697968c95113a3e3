package load

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// Buy sends one request for a piece, and records it as Run does. Times count from start.
func Buy(ctx context.Context, replica api.Client, strategy string, product int64, more url.Values, start time.Time) history.Op {
	query := url.Values{"strategy": {strategy}, "product": {strconv.FormatInt(product, 10)}}
	for name, values := range more {
		query[name] = values
	}
	op := history.Op{Client: 1, Strategy: strategy, Qty: 1, Call: time.Since(start)}
	status, body, err := Exchange(ctx, replica.HTTP, http.MethodGet, replica.Base+"/check/lock?"+query.Encode(), nil)
	if err == nil {
		judge(&op, status, body)
	} else {
		// http.Client does not report whether it sent the request, so the service may have sold.
		op.Outcome, op.Reason, op.Detail = history.Unknown, reason(ctx, err), err.Error()
	}
	op.Return = time.Since(start)
	return op
}

// Exchange sends a request without a body, and returns the status and at most 64 KiB of the answer.
func Exchange(ctx context.Context, client *http.Client, method, address string, header http.Header) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(request.Header, header)
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	const maxBytes = 64 << 10
	body, err = io.ReadAll(io.LimitReader(response.Body, maxBytes))
	return response.StatusCode, body, err
}
