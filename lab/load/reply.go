package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"oversell/lab/history"
)

// reply is the part of the service's answer that the history keeps, sold or not.
type reply struct {
	Outcome  string  `json:"outcome"`
	Replica  string  `json:"replica"`
	Backend  string  `json:"backend"`
	Detail   string  `json:"detail"`
	Left     *int    `json:"remaining"` // nil: not said, which is not 0
	WaitedMS float64 `json:"waited_ms"`
	HeldMS   float64 `json:"held_ms"`
	PooledMS float64 `json:"pooled_ms"`
	Retries  int     `json:"retries"`
}

// refusal reports whether the word is one of the service's words for "surely nothing
// was taken".
func refusal(word string) bool {
	switch word {
	case history.SoldOut, history.NotAcquired, history.Unavailable,
		"fenced", "conflict", "lost", "cancelled", "bad_request", "forbidden", "unknown_product":
		return true
	default:
		return false
	}
}

// judge enters the answer into the operation. Where the answer isn't clearly the
// service's own, the outcome is what HTTP promises: a 4xx did nothing, anything else may
// have. nginx's 502 and 504 are such: the replica may have sold before it fell silent.
func judge(op *history.Op, status int, body []byte) {
	op.Status = status
	var r reply
	if err := json.Unmarshal(body, &r); err != nil || r.Outcome == "" {
		op.Reason = history.NotUnderstood
		op.Detail = fmt.Sprintf("HTTP %d %s: %s", status, http.StatusText(status), excerpt(body))
		op.Outcome = byStatus(status)
		return
	}
	op.Reason, op.Replica, op.Backend, op.Retries = r.Outcome, r.Replica, r.Backend, r.Retries
	op.Waited, op.Held, op.Pooled = millis(r.WaitedMS), millis(r.HeldMS), millis(r.PooledMS)
	switch {
	case r.Outcome == history.Sold && status == http.StatusOK:
		op.Outcome = history.OK
		if r.Left != nil {
			op.Remaining, op.HasRemaining = *r.Left, true
		}
	case status >= 400 && refusal(r.Outcome):
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

// excerpt is the start of a foreign answer, for the error message.
func excerpt(body []byte) string {
	const most = 120
	if len(body) > most {
		return string(body[:most]) + "..."
	}
	return string(body)
}
