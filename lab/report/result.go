// Package report turns histories into figures, and figures into what people read: a
// table, a sentence, JSON, JMeter's JTL and a page.
package report

import (
	"time"

	"oversell/api"
	"oversell/lab/check"
)

// Result is what one run of one strategy came to. Its JSON keys are a promise to
// scripts: they may grow in number, but not change.
type Result struct {
	Strategy string        `json:"strategy"`
	Safe     bool          `json:"safe"` // the card claims that no update is lost
	Verdict  check.Verdict `json:"verdict"`
	Partial  bool          `json:"partial"` // stopped before its end

	Clients  int     `json:"clients"`
	Loops    int     `json:"loops"`
	Qty      int     `json:"qty,omitempty"` // pieces of each request
	RampUpMS float64 `json:"ramp_up_ms"`
	LengthMS float64 `json:"length_ms,omitempty"` // when the clients asked no more
	HoldMS   float64 `json:"hold_ms"`
	WaitMS   float64 `json:"wait_ms"`
	Stock    int     `json:"stock"` // at the start
	Seed     int64   `json:"seed"`
	Target   string  `json:"target"`

	Samples     int      `json:"samples"`
	Errors      int      `json:"errors"` // neither sold nor, truly, sold out
	ErrorPct    float64  `json:"error_pct"`
	Sold        int      `json:"sold"`         // pieces
	SoldOut     int      `json:"sold_out"`     // requests
	NotAcquired int      `json:"not_acquired"` // requests
	Unknown     int      `json:"unknown"`      // pieces, perhaps sold
	Failures    []Reason `json:"failures"`

	Remaining      *int `json:"remaining"`        // null when it could not be read
	LostUpdates    int  `json:"lost_updates"`     // surely lost; negative: gone, but not sold
	LostUpdatesMax int  `json:"lost_updates_max"` // if every unknown request sold
	Oversold       int  `json:"oversold"`         // surely sold, and never there
	Retries        int  `json:"retries"`
	Flushes        int  `json:"flushes,omitempty"` // FLUSHALL and FLUSHDB during the run: undecided

	DurationS      float64 `json:"duration_s"` // first call to last return
	ThroughputPerS float64 `json:"throughput_per_s"`
	ReceivedKBPerS float64 `json:"received_kb_per_s"` // of 1024 bytes, as JMeter has it
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

	Open *Open `json:"open,omitempty"` // of an open loop only

	Fairness float64        `json:"fairness"`
	Replicas []ReplicaCount `json:"replicas"`
	Series   Series         `json:"series"`

	StartedAt time.Time         `json:"started_at"`
	Machine   Machine           `json:"machine"` // where the load came from
	Versions  map[string]string `json:"versions"`
	Warnings  []string          `json:"warnings"`
	Sentence  Sentence          `json:"sentence"`
}

// Reason is one way to fail, and how often it happened.
type Reason struct {
	Reason  string `json:"reason"`
	Backend string `json:"backend,omitempty"` // that the service blames
	Count   int    `json:"count"`             // requests
	Unknown bool   `json:"unknown"`           // perhaps sold all the same
	Detail  string `json:"detail"`            // of the first
}

// Spread describes times in milliseconds.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// ReplicaCount is one replica's share of the answers.
type ReplicaCount struct {
	Replica string `json:"replica"`
	Samples int    `json:"samples"`
	Sold    int    `json:"sold"` // requests
}

// Series counts answers over time, in buckets of equal width from the first call.
type Series struct {
	BucketMS float64 `json:"bucket_ms"`
	EndMS    float64 `json:"end_ms"` // the last bucket ends here, before its full width
	Samples  []int   `json:"samples"`
	Sold     []int   `json:"sold"` // requests
}

// Sentence says in words what happened.
type Sentence = api.Text
