package api

import "time"

// Failpoint pauses requests, or kills their replica, at a step. It matches requests by Strategy and
// Product, or only by the Key of their lock, such as "order:7".
type Failpoint struct {
	ID       int    `json:"id"`
	Strategy string `json:"strategy,omitempty"`
	Product  int64  `json:"product,omitempty"`
	Key      string `json:"key,omitempty"`
	// Step is the step of a request at which the failpoint acts. Empty means every step.
	Step Step   `json:"step"`
	Do   Action `json:"do,omitempty"`
	// Times is how often the failpoint acts before it is deleted. The default is 1.
	Times int `json:"times,omitempty"`
	// Commands makes the replica record the commands that matching sales send to the backends.
	Commands bool `json:"commands,omitempty"`
}

// Action is what a failpoint does to a request.
type Action string

// These are the actions. The default action is DoPause.
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
	// Commands are the commands that the request has sent since its previous pause, if the failpoint
	// records them.
	Commands []string `json:"commands,omitempty"`
}

// Sender is a request whose commands are recorded and which is not paused: it runs, or has ended.
type Sender struct {
	Owner    string   `json:"owner"`
	Key      string   `json:"key"`
	Commands []string `json:"commands"` // since its last pause
}

// Failpoints is the answer of GET /lab/failpoints.
type Failpoints struct {
	Armed   []Failpoint `json:"armed"`
	Paused  []Paused    `json:"stopped"`
	Senders []Sender    `json:"senders"`
}
