package api

// Card is what a strategy claims. The conformance suite and the experiments test every
// claim: one that a run contradicts fails the build.
type Card struct {
	ID      string `json:"id"`
	Family  string `json:"family"`
	Title   Text   `json:"title"`
	Summary Text   `json:"summary"`
	// Source names the tutorial's sections or the paper.
	Source string `json:"source"`
	// Core: one of those that a comparison takes when none is named.
	Core bool `json:"core"`
	// Scope says among whom the strategy keeps order.
	Scope Scope `json:"scope"`
	// Safe: loses no update, with any number of replicas, while nothing fails.
	Safe bool `json:"safe"`
	// Backends are what must be reachable, mysql for the stock included.
	Backends []string `json:"backends"`
	// Stock is the backend that counts while it is sold; empty: the row itself.
	Stock string `json:"stock,omitempty"`
	// Locker: a lock around the critical section, with hold and release;
	// the rest decide inside the database.
	Locker bool `json:"locker"`
	// Lease: a grant ends by itself, so a dead holder blocks nobody for ever.
	Lease bool `json:"lease"`
	// LeasePerRequest: each request may choose its lease.
	LeasePerRequest bool `json:"lease_per_request"`
	// Renews: a living holder keeps its grant for as long as it works.
	Renews bool `json:"renews"`
	// Fair: over all replicas, grants go in the order of arrival.
	Fair bool `json:"fair"`
	// Slow: a full run takes minutes, for it sleeps between two tries, or tries in vain.
	Slow bool `json:"slow"`
	// Reentrant: the same owner may acquire again without waiting for itself.
	Reentrant bool `json:"reentrant"`
	// Fenced: grants carry a token that rises with every grant of a key.
	Fenced   bool     `json:"fenced"`
	Protects []Hazard `json:"protects"`
	Breaks   []Break  `json:"breaks"`
	// CriticalStep is where a sale stands between its look at the stock and its write, for
	// who holds it up or kills it there; empty: granted, then read.
	CriticalStep Step     `json:"critical_step,omitempty"`
	Tutorial     []Figure `json:"tutorial"`
}

// File is a file of a strategy's code, as it was compiled.
type File struct {
	Name string `json:"name"` // in the repository: locks/redislock/redis.go
	Text string `json:"text"`
}

// Text is said in both languages of the class.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// Scope says among whom a strategy keeps order.
type Scope string

// The scopes, from the narrowest.
const (
	ScopeNone    Scope = "none"
	ScopeProcess Scope = "process"
	ScopeShared  Scope = "shared"
)

// Hazard is something that goes wrong, and that an experiment can cause.
type Hazard string

// The hazards that cards speak of.
const (
	Race          Hazard = "race"           // requests inside one process
	ReplicaRace   Hazard = "replica-race"   // requests on several replicas
	CASStorm      Hazard = "cas-storm"      // retries feed on retries
	Crash         Hazard = "crash"          // the holder dies before it releases
	Overrun       Hazard = "overrun"        // the work outlives the lease
	Pause         Hazard = "pause"          // the holder sleeps past its lease, then writes
	Failover      Hazard = "failover"       // a replica without the lock becomes master
	MinorityLoss  Hazard = "minority-loss"  // fewer than half of the nodes die
	ClockJump     Hazard = "clock-jump"     // a node's clock leaps
	SessionExpiry Hazard = "session-expiry" // the server forgets the holder
	DeadWaiter    Hazard = "dead-waiter"    // somebody in the queue dies
	Cutoff        Hazard = "cutoff"         // the holder loses the lock service, not MySQL
	LostReply     Hazard = "lost-reply"     // done, but the answer never came
	Nesting       Hazard = "nesting"        // the owner acquires again
	Herd          Hazard = "herd"           // every release wakes everybody
	Polling       Hazard = "polling"        // waiters ask again and again
	ForeignUnlock Hazard = "foreign-unlock" // a release frees a lock that another one holds by now
	EarlyRelease  Hazard = "early-release"  // the lock is free before the transaction commits
	Deadlock      Hazard = "deadlock"       // two wait for each other
	WriteBehind   Hazard = "write-behind"   // who sold dies before the row has heard of it
)

// Break is a hazard that the strategy does not survive, and why.
type Break struct {
	Hazard Hazard `json:"hazard"`
	Why    Text   `json:"why"`
	// At is the step where a pause or a death shows it; empty: any moment will do.
	At Step `json:"at,omitempty"`
}

// Figure is one result of the tutorial's author on his machine: a fact for
// comparison, no target.
type Figure struct {
	Note       string  `json:"note,omitempty"`
	Throughput float64 `json:"throughput_per_s"`
	MedianMS   float64 `json:"median_ms"`
	Remaining  int     `json:"remaining"`
}
