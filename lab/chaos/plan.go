package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
)

// Verb says what a move does.
type Verb string

// These are the moves of a client's request. A request that stops goes on with Resumes only.
const (
	Sells   Verb = "sells"   // a sale begins, and stops at the step At if it reaches it
	Resumes Verb = "resumes" // the stopped request goes on, and may stop again, at At
	Cancels Verb = "cancels" // the client closes its connection
	Passes  Verb = "passes"  // more than a lease passes
	Locks   Verb = "locks"   // in place of Sells, for a lock that is locked and unlocked by hand
	Unlocks Verb = "unlocks" // also what it does not hold
	Awaits  Verb = "awaits"  // in place of Locks, for a latch: it sets the latch if it is open, and waits until it opens
	Counts  Verb = "counts"  // it counts the latch down by one
)

// These moves inject a fault. Each fault but those that end by themselves is healed by Heals.
const (
	Freezes    Verb = "freezes"    // the process of the client's replica is stopped
	Starves    Verb = "starves"    // it gets no processor for half a lease
	Dies       Verb = "dies"       // it is killed
	Cut        Verb = "cut"        // it is cut off from the servers of the lock
	Slow       Verb = "slow"       // the answers of these servers take half a second longer
	Holds      Verb = "holds"      // the Nth command that it sends to each of them from now on is held back
	HoldsRow   Verb = "holds-row"  // the Nth command that it sends to the database from now on is held back
	Loses      Verb = "loses"      // the answer to the Nth command is lost
	Disconnect Verb = "disconnect" // its connections to them end
	Deletes    Verb = "deletes"    // an operator deletes the locks
	Crashes    Verb = "crashes"    // the Nth server of the lock is killed, and started again
	Restarts   Verb = "restarts"   // it is restarted
	Stalls     Verb = "stalls"     // it answers nothing for half a lease, as with a slow disk
	Jumps      Verb = "jumps"      // the clock of the Nth server jumps ahead by an hour
	FailsOver  Verb = "fails-over" // a replica of Redis takes over, without what was written since the plan began
	Heals      Verb = "heals"      // the fault Of of this client or server ends
)

// Faults returns the verbs of faults, in the order of tables.
func Faults() []Verb {
	return []Verb{Freezes, Starves, Dies, Cut, Slow, Holds, HoldsRow, Loses, Disconnect, Deletes, Crashes, Restarts, Stalls, Jumps, FailsOver}
}

// OnServer reports whether a fault strikes a server of the lock, and not one client.
func (v Verb) OnServer() bool {
	return slices.Contains([]Verb{Deletes, Crashes, Restarts, Stalls, Jumps, FailsOver}, v)
}

// OnLink reports whether a fault strikes the links from a client to the servers of the lock, or to the database.
func (v Verb) OnLink() bool {
	return slices.Contains([]Verb{Cut, Slow, Holds, HoldsRow, Loses, Disconnect}, v)
}

// Lasts reports whether a fault stays until it is healed.
func (v Verb) Lasts() bool {
	return slices.Contains([]Verb{Freezes, Dies, Cut, Slow, Holds, HoldsRow, Jumps, FailsOver}, v)
}

// Move is one move of a plan.
type Move struct {
	Do     Verb
	Client int      // 0 is A; of a move that no client makes, it is 0 too
	At     api.Step // where the request stops; empty means nowhere
	Nth    int      // of a command or a server, from 1
	Many   bool     // it locks for writing, or takes two permits
	Leased bool     // it locks for a lease, which nothing renews
	Of     Verb     // the fault that Heals heals
	Try    bool     // the sale does not wait for the lock
	Nested bool     // it acquires the lock a second time
}

// Plan is a list of moves. At its end, all faults are healed, all requests go on, and one more client must buy.
type Plan []Move

const letters = "ABCD"

// Clients is the number of clients of a plan. A, B and C have a replica each, and D sends its requests to that of A.
const Clients = len(letters)

// guest is the client D, whose process is that of A. No fault is drawn for it, and it stops nowhere.
const guest = Clients - 1

// Replica returns the number of the replica to which a client sends its requests, from 0.
func Replica(client int) int { return client % guest }

// Name returns the letter of a client.
func Name(client int) string { return letters[client : client+1] }

// String returns the move as Parse reads it, such as "A sells at read".
func (m Move) String() string {
	words := []string{Name(m.Client), string(m.Do)}
	if m.Do.OnServer() || m.Do == Passes || m.Do == Heals && m.Of.OnServer() {
		words = words[1:]
	}
	if m.Of != "" {
		words = append(words, string(m.Of))
	}
	if m.Nth > 0 {
		words = append(words, strconv.Itoa(m.Nth))
	}
	if m.Try {
		words = append(words, "try")
	}
	if m.Nested {
		words = append(words, "nested")
	}
	if m.Many {
		words = append(words, "many")
	}
	if m.Leased {
		words = append(words, "leased")
	}
	if m.At != "" {
		words = append(words, "at", string(m.At))
	}
	return strings.Join(words, " ")
}

// String returns the plan on one line, as Parse reads it.
func (p Plan) String() string {
	moves := make([]string, len(p))
	for i, m := range p {
		moves[i] = m.String()
	}
	return strings.Join(moves, ", ")
}

// Parse reads a plan that String has written.
func Parse(text string) (p Plan, err error) {
	for part := range strings.SplitSeq(text, ",") {
		m, err := parseMove(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("move %d of the plan, %q: %w", len(p)+1, strings.TrimSpace(part), err)
		}
		p = append(p, m)
	}
	return p, nil
}

func parseMove(words []string) (m Move, err error) {
	if len(words) > 0 && len(words[0]) == 1 {
		m.Client = strings.Index(letters, words[0])
		words = words[1:]
	}
	if len(words) == 0 || m.Client < 0 {
		return m, fmt.Errorf("it must be a client from A to %s and a verb, such as A sells", Name(Clients-1))
	}
	if m.Do = Verb(words[0]); !slices.Contains(append(Faults(), Sells, Resumes, Cancels, Passes, Heals, Locks, Unlocks, Awaits, Counts), m.Do) {
		return m, fmt.Errorf("there is no verb %q", words[0])
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		switch word := words[0]; {
		case word == "try":
			m.Try = true
		case word == "nested":
			m.Nested = true
		case word == "many":
			m.Many = true
		case word == "leased":
			m.Leased = true
		case word == "at" && len(words) > 1:
			words = words[1:]
			m.At = api.Step(words[0])
		case m.Do == Heals && slices.Contains(Faults(), Verb(word)):
			m.Of = Verb(word)
		default:
			if m.Nth, err = strconv.Atoi(word); err != nil || m.Nth < 1 {
				return m, fmt.Errorf("the word %q is unknown", word)
			}
		}
	}
	if m.Client == guest && (m.At != "" || slices.Contains(append(Faults(), Heals), m.Do)) {
		return m, fmt.Errorf("%s shares the process of %s: it stops at no step, and no fault strikes it alone", Name(guest), Name(Replica(guest)))
	}
	if m.Do == Heals && m.Of == "" {
		return m, errors.New("it must name a fault to heal")
	}
	return m, nil
}

// Has reports whether a plan has a move with one of these verbs.
func (p Plan) Has(verbs ...Verb) bool {
	return slices.ContainsFunc(p, func(m Move) bool { return slices.Contains(verbs, m.Do) })
}
