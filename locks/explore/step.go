package explore

import (
	"fmt"
	"strings"
)

// Kind says what happens in a step.
type Kind string

// These are the kinds of steps. A trail has their texts, except for Deliver and Statement.
const (
	Begin     Kind = "begin"     // a client begins its sale
	Deliver   Kind = "deliver"   // a message reaches a server in memory
	Statement Kind = "statement" // a real MySQL executes a statement
	Time      Kind = "time"      // time passes
	Resume    Kind = "resume"    // a paused client goes on
	Pause     Kind = "pause"     // a client is paused before its message is delivered
	Hold      Kind = "hold"      // a client is paused before it gets the answer
	Lose      Kind = "lose"      // a server executes a message, and its answer is lost
	Crash     Kind = "crash"     // a client crashes
	Expire    Kind = "expire"    // ZooKeeper ends a session, or etcd a lease
	Failover  Kind = "failover"  // an empty Redis replaces another one
)

// Step is one choice of a schedule.
type Step struct {
	// Token stands for the step in a trail. It is short, such as A, lose-B.2 or time.
	Token string `json:"token"`
	Text  string `json:"text"`
	Kind  Kind   `json:"-"`
	// Client and Server are those with a part in the step, or empty.
	Client string `json:"-"`
	Server string `json:"-"`
}

func (m move) step() Step {
	s := Step{Token: m.token(), Text: m.text(), Kind: m.kind, Server: m.server}
	if m.client != noClient {
		s.Client = letter(m.client)
	}
	return s
}

func (m move) token() string {
	switch m.kind {
	case Time:
		return string(Time)
	case Failover:
		return string(Failover) + strings.TrimPrefix(m.server, "redis")
	}
	name := letter(m.client)
	if m.nth > 0 {
		name += fmt.Sprintf(".%d", m.nth+1)
	}
	if m.kind == Deliver || m.kind == Statement {
		return name
	}
	return string(m.kind) + "-" + name
}

func (m move) text() string {
	switch m.kind {
	case Time:
		return "Time passes."
	case Failover:
		return m.server + " is replaced by an empty one."
	}
	client := letter(m.client)
	switch m.kind {
	case Begin:
		return client + " begins its sale."
	case Statement:
		return client + ": " + m.what
	case Resume:
		return client + " goes on."
	case Pause:
		return client + " is paused."
	case Crash:
		return client + " crashes."
	case Hold:
		return fmt.Sprintf("%s: %s on %s; %s is paused before it gets the answer.", client, m.what, m.server, client)
	case Lose:
		return fmt.Sprintf("%s: %s on %s; the answer is lost.", client, m.what, m.server)
	case Expire:
		if m.what == "" {
			return "The session of " + client + " ends."
		}
		return fmt.Sprintf("%s ends the lease %s of %s.", m.server, m.what, client)
	default:
		return fmt.Sprintf("%s: %s on %s.", client, m.what, m.server)
	}
}

// texts describes moves for an error.
func texts(moves []move) string {
	var all []string
	for _, m := range moves {
		all = append(all, m.token()+" ("+m.text()+")")
	}
	return "[" + strings.Join(all, ", ") + "]"
}
