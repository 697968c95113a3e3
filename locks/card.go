package locks

// Card describes a strategy and what it claims. The conformance suite and the experiments
// test the claims.
type Card struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Title   Text   `json:"title"`
	Summary Text   `json:"summary"`
	// Source names the sections of the tutorial, or the paper.
	Source string `json:"source"`
	// Core marks the strategies that `run` compares when none is named.
	Core bool `json:"core"`
	// Scope is where the strategy keeps mutual exclusion: nowhere, in a process, everywhere.
	Scope Scope `json:"scope"`
	// Safe: no update is lost, with any number of replicas, while nothing fails.
	Safe bool `json:"safe"`
	// Backends must be reachable; mysql, which has the stock, included.
	Backends []string `json:"backends"`
	// Stock is the backend that has the count during the sales; empty: the row in MySQL.
	Stock string `json:"stock,omitempty"`
	// Locker: the strategy is a Locker under Guard. The others decide inside the database.
	Locker bool `json:"locker"`
	// Lease: a grant expires, so a dead holder does not block the others for ever.
	Lease bool `json:"lease"`
	// LeasePerRequest: each request may choose its lease.
	LeasePerRequest bool `json:"lease_per_request"`
	// Renews: the lease is renewed while its holder works.
	Renews bool `json:"renews"`
	// Fair: grants are in the order of arrival, over all replicas.
	Fair bool `json:"fair"`
	// Slow: a full run takes minutes, because waiters sleep between tries or try in vain.
	Slow bool `json:"slow"`
	// Reentrant: the same owner may acquire again without waiting for itself.
	Reentrant bool `json:"reentrant"`
	// Fenced: grants carry a token that rises with every grant of a key.
	Fenced   bool     `json:"fenced"`
	Protects []Hazard `json:"protects"`
	Breaks   []Break  `json:"breaks"`
	// CriticalStep is the step between read and write at which experiments pause or kill the
	// holder; empty: Granted, then Read.
	CriticalStep Step     `json:"critical_step,omitempty"`
	Tutorial     []Figure `json:"tutorial"`
}

// File is a source file of a strategy, as it was compiled.
type File struct {
	Name string `json:"name"` // in the repository: locks/redislock/redis.go
	Text string `json:"text"`
}

// Text is a text in English and in Chinese.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// Scope is where a strategy keeps mutual exclusion.
type Scope string

// The scopes, from the narrowest.
const (
	ScopeNone    Scope = "none"
	ScopeProcess Scope = "process"
	ScopeShared  Scope = "shared"
)

// Hazard is a fault that an experiment can cause.
type Hazard string

// The hazards on the cards.
const (
	Race          Hazard = "race"           // concurrent requests in one process
	ReplicaRace   Hazard = "replica-race"   // concurrent requests on several replicas
	CASStorm      Hazard = "cas-storm"      // retries cause more retries
	Crash         Hazard = "crash"          // the holder dies before it releases
	Overrun       Hazard = "overrun"        // the work outlives the lease
	Pause         Hazard = "pause"          // the holder is paused beyond its lease, then writes
	Failover      Hazard = "failover"       // a replica without the lock becomes master
	MinorityLoss  Hazard = "minority-loss"  // fewer than half of the nodes die
	ClockJump     Hazard = "clock-jump"     // a node's clock jumps
	SessionExpiry Hazard = "session-expiry" // the server ends the holder's session
	DeadWaiter    Hazard = "dead-waiter"    // a waiter in the queue dies
	Cutoff        Hazard = "cutoff"         // the holder can reach MySQL, but not the lock service
	LostReply     Hazard = "lost-reply"     // the request was carried out, and its answer was lost
	Nesting       Hazard = "nesting"        // the owner acquires the lock again
	Herd          Hazard = "herd"           // every release wakes all waiters
	Polling       Hazard = "polling"        // waiters send requests again and again
	ForeignUnlock Hazard = "foreign-unlock" // a release frees a lock that has another holder by now
	EarlyRelease  Hazard = "early-release"  // the lock is free before the transaction commits
	Deadlock      Hazard = "deadlock"       // two requests wait for each other
	WriteBehind   Hazard = "write-behind"   // the seller dies before its sale reaches the row
)

// Break is a hazard against which the strategy does not protect, and why.
type Break struct {
	Hazard Hazard `json:"hazard"`
	Why    Text   `json:"why"`
	// At is the step at which a pause or a crash shows it; empty: any step.
	At Step `json:"at,omitempty"`
}

// Figure is one result that the tutorial reports, measured on its author's machine.
type Figure struct {
	Note       string  `json:"note,omitempty"`
	Throughput float64 `json:"throughput_per_s"`
	MedianMS   float64 `json:"median_ms"`
	Remaining  int     `json:"remaining"`
}
