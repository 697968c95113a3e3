package api

import "time"

// Failpoint pauses or kills requests at a step: those of one strategy for one product, or,
// with Key instead, those of any guard for that key, such as "order:7".
type Failpoint struct {
	ID       int    `json:"id"`
	Strategy string `json:"strategy,omitempty"`
	Product  int64  `json:"product,omitempty"`
	Key      string `json:"key,omitempty"`
	// Step is where it acts; empty: at each step.
	Step Step   `json:"step"`
	Do   Action `json:"do,omitempty"`
	// Times is the number of requests that it acts on; left out, 1.
	Times int `json:"times,omitempty"`
}

// Action is what a failpoint does to a request.
type Action string

// The actions. DoPause is the default.
const (
	DoPause Action = "pause"
	DoDie   Action = "die" // the replica ends, as by kill -9
)

// Paused is a request that a failpoint holds at a step until it is resumed.
type Paused struct {
	Owner    string    `json:"owner"`
	Strategy string    `json:"strategy"`
	Key      string    `json:"key"`
	Step     Step      `json:"step"`
	Fence    int64     `json:"fence,omitempty"`
	Since    time.Time `json:"since"`
}

// Failpoints is the answer of /lab/failpoints.
type Failpoints struct {
	Armed  []Failpoint `json:"armed"`
	Paused []Paused    `json:"stopped"`
}
