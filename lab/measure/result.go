// Package measure computes the figures and the verdict of a run from its history.
package measure

import (
	"time"

	"oversell/api"
)

// Result has the figures of one run. Scripts rely on its JSON keys: keys may be added, not changed.
type Result struct {
	Strategy string      `json:"strategy"`
	Safe     bool        `json:"safe"`              // the card claims that no update is lost in such a run
	Alone    bool        `json:"alone,omitempty"`   // the claim is only for one replica, which served all requests
	Overrun  bool        `json:"overrun,omitempty"` // the work was longer than the lease, which the card names as a flaw
	Verdict  api.Verdict `json:"verdict"`
	Cause    api.Text    `json:"cause,omitzero"` // why too little was sold to prove anything: then no update lost is inconclusive
	Partial  bool        `json:"partial"`        // the run was stopped before its end

	Clients   int     `json:"clients"`
	Loops     int     `json:"loops"`
	Qty       int     `json:"qty,omitempty"` // pieces of each request
	RampUpMS  float64 `json:"ramp_up_ms"`
	LengthMS  float64 `json:"length_ms,omitempty"` // after this time the clients send no further request
	HoldMS    float64 `json:"hold_ms"`
	OutsideMS float64 `json:"outside_ms,omitempty"` // work before the lock
	WaitMS    float64 `json:"wait_ms"`
	PauseMS   float64 `json:"pause_ms,omitempty"` // left out if each strategy that polls had its own
	LeaseMS   float64 `json:"lease_ms,omitempty"` // left out if each lock had its strategy's default
	Stock     int     `json:"stock"`              // at the start
	DelayMS   float64 `json:"delay_ms,omitempty"` // of each answer of a server to a replica, if the lab added one
	Fsync     bool    `json:"fsync,omitempty"`    // the lab's servers synced each write to the disk
	DiskMS    float64 `json:"disk_ms,omitempty"`  // added to each such sync
	Seed      int64   `json:"seed"`
	Target    string  `json:"target"`

	Samples     int      `json:"samples"`
	Errors      int      `json:"errors"` // requests neither sold nor rejected as sold out
	ErrorPct    float64  `json:"error_pct"`
	Sold        int      `json:"sold"`         // pieces
	SoldOut     int      `json:"sold_out"`     // requests
	NotAcquired int      `json:"not_acquired"` // requests
	Unknown     int      `json:"unknown"`      // pieces that may have been sold
	Failures    []Reason `json:"failures"`

	Remaining      *int `json:"remaining"`        // null when it could not be read
	LostUpdates    int  `json:"lost_updates"`     // at least; a negative number of pieces is gone without a sale
	LostUpdatesMax int  `json:"lost_updates_max"` // LostUpdates if every unknown request sold
	Oversold       int  `json:"oversold"`         // pieces sold beyond the stock, at least
	Retries        int  `json:"retries"`
	Flushes        int  `json:"flushes,omitempty"` // FLUSHALL and FLUSHDB during the run; with any, the verdict is inconclusive

	DurationS      float64 `json:"duration_s"` // first call to last return
	ThroughputPerS float64 `json:"throughput_per_s"`
	ReceivedKBPerS float64 `json:"received_kb_per_s"` // of 1024 bytes, as in JMeter
	SentKBPerS     float64 `json:"sent_kb_per_s"`

	MeanMS float64 `json:"mean_ms"`
	P50MS  float64 `json:"p50_ms"`
	P90MS  float64 `json:"p90_ms"`
	P95MS  float64 `json:"p95_ms"`
	P99MS  float64 `json:"p99_ms"`
	MinMS  float64 `json:"min_ms"`
	MaxMS  float64 `json:"max_ms"`

	Waited Spread `json:"waited_ms"` // in the lock's queue
	Held   Spread `json:"held_ms"`   // inside the critical section
	Pooled Spread `json:"pooled_ms"` // waiting for a database connection

	Open *Open `json:"open,omitempty"` // nil for a closed loop

	Load   float64 `json:"load_share,omitempty"` // share of the cores that the load took, 0 to 1
	Others float64 `json:"-"`                    // that of processes which the load's process has not started

	Fairness float64        `json:"fairness"`
	Replicas []ReplicaCount `json:"replicas"`
	Series   Series         `json:"series"`

	StartedAt time.Time         `json:"started_at"`
	Machine   Machine           `json:"machine"`
	Versions  map[string]string `json:"versions"`
	Warnings  []string          `json:"warnings"`
	Sentence  api.Text          `json:"sentence"`
}

// Class returns the CSS class of the result: broken, holds or inconclusive.
func (r Result) Class() string { return string(r.Verdict) }

// Reason is one reason of failure, with the number of its requests.
type Reason struct {
	Reason  string `json:"reason"`
	Backend string `json:"backend,omitempty"` // the unavailable backend
	Count   int    `json:"count"`             // requests
	Unknown bool   `json:"unknown"`           // the requests may have sold
	Detail  string `json:"detail"`            // of the first request
}

// Spread describes times in milliseconds.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// ReplicaCount counts the answers of one replica.
type ReplicaCount struct {
	Replica string `json:"replica"`
	Samples int    `json:"samples"`
	Sold    int    `json:"sold"` // requests
}

// Series counts answers over time, in buckets of equal width from the first call.
type Series struct {
	BucketMS float64 `json:"bucket_ms"`
	EndMS    float64 `json:"end_ms"` // the end of the last bucket, which may be narrower
	Samples  []int   `json:"samples"`
	Sold     []int   `json:"sold"` // requests
}
