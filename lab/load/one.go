package load

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// One sends one request and judges its answer as a run does. start is what Call and
// Return are counted from.
func One(ctx context.Context, client *http.Client, address string, start time.Time) (op history.Op) {
	op = history.Op{Client: 1, Qty: 1, Call: time.Since(start)}
	defer func() { op.Return = time.Since(start) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		op.Outcome, op.Reason, op.Detail = history.Refused, history.Unreachable, err.Error()
		return op
	}
	response, err := client.Do(request)
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		const enough = 64 << 10
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(response.Body, enough)); err == nil {
			judge(&op, response.StatusCode, body)
			return op
		}
	}
	// Whether it was sent is not known here.
	op.Outcome, op.Reason, op.Detail = history.Unknown, broken(ctx, err), err.Error()
	return op
}

// Buy sends one sale to a replica and judges its answer, as a run does. start is what the
// times in the result count from.
func Buy(ctx context.Context, at api.Client, strategy string, product int64, more url.Values, start time.Time) history.Op {
	query := url.Values{"strategy": {strategy}, "product": {strconv.FormatInt(product, 10)}}
	for name, values := range more {
		query[name] = values
	}
	op := One(ctx, at.HTTP, at.Base+"/check/lock?"+query.Encode(), start)
	op.Strategy = strategy
	return op
}
