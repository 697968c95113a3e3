package api

import "strings"

// Outcome is the word in the service's answer that says how a request ended.
type Outcome string

// Sold is the outcome of a successful sale. It is the only outcome that always takes stock.
const Sold Outcome = "sold"

// Unknown is the outcome of a request that may or may not have taken stock.
const Unknown Outcome = "unknown"

// These are the outcomes of a sale that took no stock.
const (
	SoldOut        Outcome = "sold_out"
	UnknownProduct Outcome = "unknown_product"
	NotAcquired    Outcome = "not_acquired" // the lock was not acquired within the wait
	Unavailable    Outcome = "unavailable"  // a backend cannot be reached
	Conflict       Outcome = "conflict"     // other requests wrote the row before each attempt
	Lost           Outcome = "lost"         // the lock was lost before the write
	Fenced         Outcome = "fenced"       // a newer fence has claimed the row
	Cancelled      Outcome = "cancelled"    // the request was cancelled
	BadRequest     Outcome = "bad_request"
	Forbidden      Outcome = "forbidden"
)

// These are the outcomes of failed requests to routes other than the sale. They changed no data.
const (
	UnknownCoupon Outcome = "unknown_coupon"
	NotOpen       Outcome = "not_open"
	Over          Outcome = "over"
	AlreadyTaken  Outcome = "already_taken"
	Running       Outcome = "running" // an earlier request of the user is still running
	UnknownShow   Outcome = "unknown_show"
	UnknownOrder  Outcome = "unknown_order"
	WrongAmount   Outcome = "wrong_amount"
	KeyReused     Outcome = "key_reused"
	Upgrade       Outcome = "upgrade"  // a reader asked for the write lock
	Mismatch      Outcome = "mismatch" // the name is in use with another size
	Full          Outcome = "full"     // the backend accepts no more names
	NotHeld       Outcome = "not_held" // the owner does not hold the lock that it unlocks
	Expired       Outcome = "expired"  // the lock ended before the unlock
)

// These are the outcomes of a successful request to a route other than the sale.
const (
	Ordered        Outcome = "ordered"
	Credited       Outcome = "credited"
	CreditedBefore Outcome = "credited_before" // by an earlier request with the same key
	Held           Outcome = "held"            // a lock or permits were held, and released
	Locked         Outcome = "locked"
	Unlocked       Outcome = "unlocked"
	Opened         Outcome = "opened"  // the latch is open
	Counted        Outcome = "counted" // the count of the latch is lower, but not 0
	Set            Outcome = "set"
	WasSet         Outcome = "was_set"
	Removed        Outcome = "removed"
	WasNotSet      Outcome = "was_not_set"
	Passed         Outcome = "passed"  // there was no barrier, or it was removed
	Entered        Outcome = "entered" // all members have entered the double barrier
	Left           Outcome = "left"    // all members have left the double barrier
	WasRead        Outcome = "read"
	Changed        Outcome = "changed"
	Unchanged      Outcome = "unchanged" // the counter had another value than expected
)

// TooManyStreams is the outcome of GET /events if the replica has too many open streams already.
const TooManyStreams Outcome = "too_many_streams"

// TookNothing returns true only for the outcomes of a sale that took no stock.
func (o Outcome) TookNothing() bool {
	switch o {
	case SoldOut, UnknownProduct, NotAcquired, Unavailable, Conflict, Lost, Fenced, Cancelled, BadRequest, Forbidden:
		return true
	default:
		return false
	}
}

// Sale is the answer to a sale. Times are in milliseconds.
type Sale struct {
	Outcome  Outcome `json:"outcome"`
	Strategy string  `json:"strategy"`
	Replica  string  `json:"replica"`
	// Owner names the request, as the owner of its lock and in its steps: see Event.
	Owner   string `json:"owner"`
	Product int64  `json:"product"`
	Qty     int    `json:"qty"`
	// Remaining is the stock after the sale. nil means that the strategy does not know this stock.
	Remaining *int    `json:"remaining,omitempty"`
	Fence     int64   `json:"fence,omitempty"`
	WaitedMS  float64 `json:"waited_ms"`
	HeldMS    float64 `json:"held_ms"`
	// PooledMS is the time for which the sale waited for a database connection.
	PooledMS float64 `json:"pooled_ms"`
	Retries  int     `json:"retries"`
	Warning  string  `json:"warning,omitempty"`
}

// Stock has the fields that a lab reads from the answers of GET and PUT /stock/:id.
type Stock struct {
	Count   int   `json:"count"`
	Version int64 `json:"version"`
	Fence   int64 `json:"fence"`
	// Flushes counts FLUSHALL and FLUSHDB of the strategy's Redis. nil means no Redis or no answer.
	Flushes *int64 `json:"flushes"`
	// Warnings has an error for each strategy or primitive whose state a reset could not delete.
	Warnings []string `json:"warnings"`
}

// Problem is the answer to a failed request, as application/problem+json (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Hint says what the client can do.
	Hint     string  `json:"hint,omitempty"`
	Outcome  Outcome `json:"outcome"`
	Replica  string  `json:"replica"`
	Strategy string  `json:"strategy,omitempty"`
	// Owner is that of a Sale. It is empty if the request was rejected before it had one.
	Owner string `json:"owner,omitempty"`
	// Name is the client's name for a primitive, such as a semaphore.
	Name     string  `json:"name,omitempty"`
	WaitedMS float64 `json:"waited_ms"`
	HeldMS   float64 `json:"held_ms,omitempty"`
	Retries  int     `json:"retries"`
	// Warning says that another strategy holds stock of the product outside its row.
	Warning string `json:"warning,omitempty"`
	// Parameter and Allowed say which parameter caused a 400, and its allowed values.
	Parameter string `json:"parameter,omitempty"`
	Allowed   string `json:"allowed,omitempty"`
	// Backend is the backend that caused a 503. In other answers, it is the primitive's backend.
	Backend string `json:"backend,omitempty"`
}

// Says says what a primitive has done, or why it did not, with a number that it answered. It is empty for the outcome
// of another route.
func (o Outcome) Says(number string) Text {
	words := map[Outcome]Text{
		NotAcquired: {EN: "gave up: the maximum wait has passed", ZH: "放弃：超过了最长等待时间"},
		Mismatch:    {EN: "rejected: the name is in use with another number of permits or members", ZH: "被拒绝：正以另一数目使用"},
		Upgrade:     {EN: "rejected: a reader cannot become a writer", ZH: "被拒绝：读锁不能升级为写锁"},
		NotHeld:     {EN: "rejected: this owner does not hold the lock", ZH: "被拒绝：不是锁的持有者"},
		Expired:     {EN: "too late: the lock has expired", ZH: "太晚了：锁已过期"},

		Held:      {EN: "released", ZH: "已释放"},
		Opened:    {EN: "the latch is open", ZH: "闭锁已打开"},
		Counted:   {EN: "counted down, # left", ZH: "倒数一次，还剩 #"},
		Set:       {EN: "set the barrier", ZH: "设置了屏障"},
		WasSet:    {EN: "the barrier existed already", ZH: "屏障已经存在"},
		Passed:    {EN: "passed the barrier", ZH: "通过了屏障"},
		Removed:   {EN: "removed the barrier", ZH: "移除了屏障"},
		WasNotSet: {EN: "there was no barrier", ZH: "没有屏障"},
		Entered:   {EN: "entered with the other members", ZH: "与其他成员一起进入"},
		Left:      {EN: "left with the other members", ZH: "与其他成员一起离开"},
		WasRead:   {EN: "read #", ZH: "读到 #"},
		Changed:   {EN: "changed it to #", ZH: "改成了 #"},
		Unchanged: {EN: "not changed: it is #", ZH: "没有修改：现在是 #"},
		Locked:    {EN: "locked, count #", ZH: "已加锁，计数 #"},
		Unlocked:  {EN: "unlocked, count #", ZH: "已解锁，计数 #"},
	}
	return Text{strings.ReplaceAll(words[o].EN, "#", number), strings.ReplaceAll(words[o].ZH, "#", number)}
}
