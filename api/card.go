package api

import (
	"fmt"
	"slices"
	"strings"
)

// Card describes a strategy and its claims. Tests and experiments check each claim.
type Card struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Title   Text   `json:"title"`
	Summary Text   `json:"summary"`
	// When says in which case to choose the strategy, or which one to use instead.
	When Text `json:"when"`
	// Source names where the strategy comes from: sections of the tutorial, a paper or a library.
	Source string `json:"source"`
	// Core means that a comparison includes the strategy if the user names no strategies.
	Core bool `json:"core"`
	// Aside means that the page lists the strategy after the others, because few readers need it.
	Aside bool `json:"aside,omitempty"`
	// Scope says between which requests the strategy ensures mutual exclusion.
	Scope Scope `json:"scope"`
	// Safe means that no update is lost while nothing fails, with any number of replicas.
	Safe bool `json:"safe"`
	// Backends are the servers that must be reachable, including mysql for the stock.
	Backends []string `json:"backends"`
	// Stock is the backend that keeps the stock during a sale. Empty means the row in MySQL.
	Stock string `json:"stock,omitempty"`
	// Locker means a lock for the whole sale, not other means such as a conditional UPDATE.
	Locker bool `json:"locker"`
	// Lease means that the lock expires, so a dead holder does not block the waiters for ever.
	Lease bool `json:"lease"`
	// LeasePerRequest means that each request may choose its lease.
	LeasePerRequest bool `json:"lease_per_request"`
	// Renews means that the lease is renewed until the holder releases the lock.
	Renews bool `json:"renews"`
	// Unchecked means that a holder does not notice the end of its lease: it goes on, and writes.
	Unchecked bool `json:"unchecked,omitempty"`
	// Fair means that waiters of all replicas get the lock in order of arrival.
	Fair bool `json:"fair"`
	// Slow means that a run of normal size takes minutes, as waiters sleep or many attempts fail.
	Slow bool `json:"slow"`
	// Reentrant means that the owner of a lock may acquire the same lock again without waiting.
	Reentrant bool `json:"reentrant"`
	// Fenced means that each grant has a fencing token, higher than all earlier tokens of the key.
	Fenced bool `json:"fenced"`
	// SeveralLocks means that a sale holds locks of several keys. It may name more of them. A cluster may keep them on
	// several masters.
	SeveralLocks bool `json:"several_locks,omitempty"`
	// SilentRelease means that a release has no result: a holder does not learn that its lock was lost.
	SilentRelease bool `json:"silent_release,omitempty"`
	// PollMS is the longest pause between two tries of a waiter, in milliseconds, if it is unusually long.
	PollMS int64 `json:"poll_ms,omitempty"`
	// Protects lists the hazards that the strategy survives, and Breaks the hazards that break it.
	Protects []Hazard `json:"protects"`
	Breaks   []Break  `json:"breaks"`
	// CriticalStep is where experiments pause or kill the holder. Empty means granted or read.
	CriticalStep Step `json:"critical_step,omitempty"`
	// Setting says how the servers must be set, and what happens otherwise. No experiment shows it.
	Setting Text `json:"setting,omitzero"`
	// Tutorial lists the results that the tutorial's author measured with this strategy.
	Tutorial []Figure `json:"tutorial"`
	// Code has the source files. Only GET /strategies/:id returns it.
	Code []File `json:"code,omitempty"`
}

// Primitive describes a synchronization primitive other than a lock, such as a semaphore.
type Primitive struct {
	ID      string `json:"id"`
	Title   Text   `json:"title"`
	Summary Text   `json:"summary"`
	// Source lists the sections of the tutorial that have the primitive, such as "3.9.6".
	Source   string   `json:"source"`
	Backends []string `json:"backends"`
	Routes   []string `json:"routes"`
	// Code has the source files. Only GET /primitives/:id returns it.
	Code []File `json:"code,omitempty"`
}

// File is a source file of a strategy, as compiled into the program.
type File struct {
	Name string `json:"name"` // its path, such as locks/redislock/redis.go
	Text string `json:"text"`
}

// Text is a text in English and in Chinese.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// In returns the text in the language lang, en or zh. It returns English if there is no Chinese.
func (t Text) In(lang string) string {
	if lang == "zh" && t.ZH != "" {
		return t.ZH
	}
	return t.EN
}

// Textf formats the values into en and zh. For another order of the values, use verbs like %[2]d.
func Textf(en, zh string, values ...any) Text {
	return Text{fmt.Sprintf(en, values...), fmt.Sprintf(zh, values...)}
}

// Verbatim returns a text that is the same in both languages.
func Verbatim(s string) Text { return Text{s, s} }

// Joined joins sentences, in English with spaces. It leaves out empty texts.
func Joined(texts ...Text) Text {
	texts = slices.DeleteFunc(texts, func(t Text) bool { return t == Text{} })
	en, zh := make([]string, len(texts)), make([]string, len(texts))
	for i, t := range texts {
		en[i], zh[i] = t.EN, t.In("zh")
	}
	return Text{strings.Join(en, " "), strings.Join(zh, "")}
}

// Scope says between which requests a strategy ensures mutual exclusion.
type Scope string

// These are the scopes, from the narrowest to the widest.
const (
	ScopeNone    Scope = "none"
	ScopeProcess Scope = "process"
	ScopeShared  Scope = "shared"
)

// Hazard is a kind of failure that an experiment causes.
type Hazard string

// JoinHazards returns the names of hazards, with a separator between them.
func JoinHazards(hazards []Hazard, separator string) string {
	names := make([]string, len(hazards))
	for i, h := range hazards {
		names[i] = string(h)
	}
	return strings.Join(names, separator)
}

// These are the hazards that cards name.
const (
	Race          Hazard = "race"           // requests inside one process
	ReplicaRace   Hazard = "replica-race"   // requests on several replicas
	CASStorm      Hazard = "cas-storm"      // retries cause more retries
	Crash         Hazard = "crash"          // the holder dies before it releases
	HostDeath     Hazard = "host-death"     // the holder's machine dies, and its connections stay open
	Overrun       Hazard = "overrun"        // the work takes longer than the lease
	Pause         Hazard = "pause"          // the holder is paused past its lease, then writes
	Failover      Hazard = "failover"       // a server without the lock becomes master
	MinorityLoss  Hazard = "minority-loss"  // fewer than half of the servers die
	ClockJump     Hazard = "clock-jump"     // a server's clock jumps
	SessionExpiry Hazard = "session-expiry" // the server expires the holder's session
	DeadWaiter    Hazard = "dead-waiter"    // a waiter in the queue dies
	Cutoff        Hazard = "cutoff"         // the holder loses the lock's server, not MySQL
	LostReply     Hazard = "lost-reply"     // a command is carried out, and its answer is lost
	Nesting       Hazard = "nesting"        // the owner acquires the lock again
	Herd          Hazard = "herd"           // every release wakes all waiters
	Polling       Hazard = "polling"        // waiters send requests again and again
	ForeignUnlock Hazard = "foreign-unlock" // a release frees a lock that another owner holds
	EarlyRelease  Hazard = "early-release"  // the lock is released before the transaction commits
	Deadlock      Hazard = "deadlock"       // two owners wait for each other
	WriteBehind   Hazard = "write-behind"   // the seller dies before the row is updated
	Operator      Hazard = "operator"       // an operator deletes the lock while its holder works
	Starved       Hazard = "starved"        // the holder gets no processor until its lease has ended
	RenewalReply  Hazard = "renewal-reply"  // a lease is renewed, and the answer is lost
	WaiterSession Hazard = "waiter-session" // the server expires a waiter's session
	BareMajority  Hazard = "bare-majority"  // one of a bare majority of servers loses its data
	DatabaseDown  Hazard = "database-down"  // the database is killed, and stays down for a while
	// OperatorAtWrite is Operator after the holder's last check.
	OperatorAtWrite Hazard = "operator-at-write"
)

// Break is a hazard that the strategy does not survive, with the reason.
type Break struct {
	Hazard Hazard `json:"hazard"`
	Why    Text   `json:"why"`
	// At is the step at which a pause or a crash breaks the strategy. Empty means any step.
	At Step `json:"at,omitempty"`
}

// Figure is a result that the tutorial's author measured on his machine, only for comparison.
type Figure struct {
	Note       Text    `json:"note,omitzero"`
	Throughput float64 `json:"throughput_per_s"`
	MedianMS   float64 `json:"median_ms"`
	Remaining  int     `json:"remaining"`
}
