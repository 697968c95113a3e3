package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// reply has the fields of both possible answers, api.Sale and api.Problem.
type reply struct {
	api.Sale
	Backend string `json:"backend"`
	Detail  string `json:"detail"`
}

// recordAnswer records the answer in op. If the service did not write the answer, the HTTP status decides.
// A 4xx means that nothing was sold. Any other status means that the outcome is unknown: after
// nginx's 502 or 504, the replica may have sold.
func recordAnswer(op *history.Op, status int, body []byte) {
	op.Status = status
	var r reply
	if err := json.Unmarshal(body, &r); err != nil || r.Outcome == "" {
		op.Reason = history.NotUnderstood
		op.Detail = fmt.Sprintf("HTTP %d %s: %.120s", status, http.StatusText(status), body)
		op.Outcome = byStatus(status)
		return
	}
	op.Reason, op.Replica, op.Owner, op.Backend, op.Retries = string(r.Outcome), r.Replica, r.Owner, r.Backend, r.Retries
	op.Waited, op.Held, op.Pooled = millis(r.WaitedMS), millis(r.HeldMS), millis(r.PooledMS)
	switch {
	case r.Outcome == api.Sold && status == http.StatusOK:
		op.Outcome = history.OK
		if r.Remaining != nil {
			op.Remaining, op.HasRemaining = *r.Remaining, true
		}
	case status >= 400 && r.Outcome.TookNothing():
		op.Outcome = history.Refused
	default:
		op.Outcome = byStatus(status)
	}
	if op.Failed() {
		op.Detail = r.Detail
	}
}

func byStatus(status int) history.Outcome {
	if status >= 400 && status < 500 {
		return history.Refused
	}
	return history.Unknown
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
