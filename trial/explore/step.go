package explore

import (
	"fmt"
	"strings"
)

// Kind says what happens in a step.
type Kind string

// These are the kinds of steps. A trail has their texts, except for Deliver.
const (
	Begin    Kind = "begin"    // a client begins its sale
	Deliver  Kind = "deliver"  // a message reaches its server
	Time     Kind = "time"     // time passes
	Resume   Kind = "resume"   // a paused client goes on
	Pause    Kind = "pause"    // a client is paused before its message is delivered
	Hold     Kind = "hold"     // a client is paused before it gets the answer
	Lose     Kind = "lose"     // a server executes a message, and its answer is lost
	Crash    Kind = "crash"    // a client crashes
	Expire   Kind = "expire"   // ZooKeeper ends a session
	Failover Kind = "failover" // an empty Redis replaces another one
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
	return Step{Token: m.token(), Text: m.text(), Kind: m.kind, Client: m.letter(), Server: m.server}
}

func (m move) letter() string {
	if m.client == noClient {
		return ""
	}
	return letter(m.client)
}

func (m move) token() string {
	switch m.kind {
	case Time:
		return string(Time)
	case Failover:
		return string(Failover) + strings.TrimPrefix(m.server, "redis")
	}
	name := m.letter()
	if m.nth > 0 {
		name += fmt.Sprintf(".%d", m.nth+1)
	}
	if m.kind == Deliver {
		return name
	}
	return string(m.kind) + "-" + name
}

func (m move) text() string {
	if m.kind == Time {
		return "Time passes."
	}
	format := map[Kind]string{
		Begin:    "%[1]s begins its sale.",
		Deliver:  "%[1]s: %[2]s on %[3]s.",
		Resume:   "%[1]s goes on.",
		Pause:    "%[1]s is paused.",
		Hold:     "%[1]s: %[2]s on %[3]s; %[1]s is paused before it gets the answer.",
		Lose:     "%[1]s: %[2]s on %[3]s; the answer is lost.",
		Crash:    "%[1]s crashes.",
		Expire:   "The session of %[1]s ends.",
		Failover: "%[3]s is replaced by an empty one.",
	}[m.kind]
	return fmt.Sprintf(format, m.letter(), m.what, m.server)
}

// texts describes moves for an error.
func texts(moves []move) string {
	var all []string
	for _, m := range moves {
		all = append(all, m.token()+" ("+m.text()+")")
	}
	return "[" + strings.Join(all, ", ") + "]"
}
