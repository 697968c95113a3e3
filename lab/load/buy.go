package load

import (
	"context"
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
	status, _, body, err := api.Exchange(ctx, replica.HTTP, http.MethodGet, replica.Base+"/check/lock?"+query.Encode(), nil)
	if err == nil {
		recordAnswer(&op, status, body)
	} else {
		// http.Client does not report whether it sent the request, so the service may have sold.
		op.Outcome, op.Reason, op.Detail = history.Unknown, reason(ctx, err), err.Error()
	}
	op.Return = time.Since(start)
	return op
}
