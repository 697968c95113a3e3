package api

import "time"

// Failpoint matches a strategy and a product, or only the Key of a lock, such as "order:7".
type Failpoint struct {
	ID       int    `json:"id"`
	Strategy string `json:"strategy,omitempty"`
	Product  int64  `json:"product,omitempty"`
	Key      string `json:"key,omitempty"`
	// Step is the step at which the failpoint acts. Empty means each step.
	Step Step   `json:"step"`
	Do   Action `json:"do,omitempty"`
	// Times is the number of times that the failpoint acts. The default is 1.
	Times int `json:"times,omitempty"`
}

// Action is what a failpoint does to a request.
type Action string

// These are the actions. DoPause is the default.
const (
	DoPause Action = "pause"
	DoDie   Action = "die" // kills the replica with SIGKILL
)

// Paused is a request that a failpoint has paused.
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
