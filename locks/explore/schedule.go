package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/locks/redislock"
	"oversell/stock"
)

// Bounds limits the clients and the faults of one schedule.
type Bounds struct {
	Clients     int  `json:"clients"`
	Pauses      int  `json:"pauses"`       // of a client, for up to 1.6 leases
	Crashes     int  `json:"crashes"`      // of a client
	LostReplies int  `json:"lost_replies"` // a server executes a command, and the connection breaks
	Failovers   int  `json:"failovers"`    // a Redis is replaced by an empty one
	Expiries    int  `json:"expiries"`     // ZooKeeper ends the session of a client, or etcd a lease
	Fenced      bool `json:"fenced"`       // the sales are fenced
}

// String names the clients and the faults.
func (b Bounds) String() string {
	text := fmt.Sprintf("%d clients", b.Clients)
	for _, f := range []struct {
		n         int
		one, many string
	}{
		{b.Pauses, "pause", "pauses"},
		{b.Crashes, "crash", "crashes"},
		{b.LostReplies, "lost reply", "lost replies"},
		{b.Failovers, "fail-over", "fail-overs"},
		{b.Expiries, "expired session", "expired sessions"},
	} {
		switch f.n {
		case 0:
		case 1:
			text += ", 1 " + f.one
		default:
			text += fmt.Sprintf(", %d %s", f.n, f.many)
		}
	}
	if b.Fenced {
		text += ", fenced"
	}
	return text
}

const (
	product = 1
	lease   = 200 * time.Millisecond
	// wait is longer than the lease of a crashed holder. A client that waits in vain has stalled.
	wait = 10 * lease
	// leap is how far the clock goes on in one move, unless a client sends a message earlier. It is
	// short, so that grants on their way become stale one by one.
	leap = 2 * lease / 5
	// longestPause is longer than a lease and the time until the next client has acquired the lock.
	longestPause = 8 * lease / 5
	tick         = lease / 40
	// slower is how much slower the clock of etcd's strategies goes: etcd's leases are whole seconds.
	slower = 5
	// longestEnd is longer than any goroutine of a closed client goes on, such as a release that is
	// repeated.
	longestEnd = 30 * time.Second
	// endless is the number of moves after which a schedule is given up.
	endless = 3000
)

// move is one choice of a schedule.
type move struct {
	token   string // for a trail, such as A, lose-B.2 or time
	id      string // names the same message before and after other moves
	text    string
	sender  string // the client whose message it delivers; empty for other moves
	to      string // the server, if one has a part in it
	on      *link  // nil for a statement
	perform func()
	effect  effect // once it has been performed
}

// same reports whether two moves in two repetitions of a schedule are the same.
func (m move) same(other move) bool {
	return m.id == other.id && (m.id != "" || m.token == other.token)
}

func (m move) step() Step {
	return Step{Token: m.token, Text: m.text, Client: m.client(), Server: m.to}
}

// client returns the client of a move by its token, such as A.2 or lose-B. It is empty for time and
// for a fail-over.
func (m move) client() string {
	name, _, _ := strings.Cut(m.token[strings.LastIndex(m.token, "-")+1:], ".")
	if len(name) == 1 && name >= letter(0) && name <= letter(maxClients-1) {
		return name
	}
	return ""
}

// End is how the sale of one client ended.
type End string

// These are the ends of a sale.
const (
	Sold    End = "sold"
	Crashed End = "crashed"
	Stalled End = "waited in vain"
	Aborted End = "gave up"       // and took nothing
	Unknown End = "got no answer" // so it may have taken a piece
)

// Outcome is the result of one schedule.
type Outcome struct {
	Ends []End
	Left int
	Two  bool // two clients held the lock at the same time
	Late bool // a sale took as long as a lease, so a client waited until a lease ended
}

// Oversold reports whether an update was lost, or a piece was taken that no client has.
func (o Outcome) Oversold() bool {
	sold, unsure := o.count(Sold), o.count(Unknown)+o.count(Crashed)
	taken := initialCount - o.Left
	return sold > taken || taken > sold+unsure
}

func (o Outcome) count(end End) (n int) {
	for _, e := range o.Ends {
		if e == end {
			n++
		}
	}
	return n
}

// String describes the outcome in one line.
func (o Outcome) String() string {
	var ends []string
	for i, e := range o.Ends {
		ends = append(ends, letter(i)+" "+string(e))
	}
	text := fmt.Sprintf("%s; %d of %d are left", strings.Join(ends, ", "), o.Left, initialCount)
	if o.Two {
		text += "; two held the lock at the same time"
	}
	return text
}

// runner executes schedules of a trial, each from the beginning.
type runner struct {
	Trial
	backends []string
	scripts  map[string]string
	scale    time.Duration // how many times longer leases and waits are
	pace     time.Duration // how many times longer pauses between two tries are
}

func newRunner(t Trial) (*runner, error) {
	if err := Supports(t.Strategy, t.Bounds.Fenced); err != nil {
		return nil, err
	}
	card, _ := cardOf(t.Strategy)
	scripts, err := redislock.Scripts()
	return &runner{t, card.Backends, scripts, scale(card.Backends), 1}, err
}

// RedisServers is the number of independent Redis for redlock. A majority of three is two.
const RedisServers = 3

// run executes one schedule. choose gets the possible moves, and returns the index of the next one, or
// -1 to end the schedule early. The clients run the code of the strategy as the replicas do, each
// with its own connections, in a bubble with a clock of its own.
func (r *runner) run(choose func([]move) int) (o Outcome, complete bool, err error) {
	minis := make([]*miniredis.Miniredis, r.servers())
	for i := range minis {
		if minis[i], err = startRedis(); err != nil {
			return o, false, err
		}
	}
	synctest.Test(&testing.T{}, func(*testing.T) {
		w := newWorld(r.Bounds.Clients, len(minis))
		for i, s := range w.redis {
			s.mini, s.files = minis[i], r.scripts
			s.mini.SetTime(time.Now())
		}
		x := &schedule{runner: r, world: w, left: r.Bounds}
		o, complete, err = x.run(choose)
	})
	return o, complete, err
}

// servers returns the number of Redis servers.
func (r *runner) servers() int {
	switch {
	case slices.Contains(r.backends, "redlock"):
		return RedisServers
	case slices.Contains(r.backends, "redis"):
		return 1
	}
	return 0
}

// Supports returns an error if the explorer has no servers for a strategy, or its lock has no fence.
func Supports(strategy string, fenced bool) error {
	card, ok := cardOf(strategy)
	switch {
	case !ok:
		return fmt.Errorf("explore: there is no strategy %q", strategy)
	case unrepeatable(strategy):
		return fmt.Errorf("explore: %s cannot be explored: it draws rows at random, or each of its tries has another effect", strategy)
	case card.Family == "mysql" || card.Family == "local":
	case card.Family == "zookeeper" || card.Family == "etcd":
	case card.Family == "redis" && card.ID != "redis-stock":
	default:
		return fmt.Errorf("explore: %s runs on servers that the explorer does not have yet", strategy)
	}
	if fenced && !card.Fenced {
		return fmt.Errorf("explore: %s has no fencing token", strategy)
	}
	return nil
}

func cardOf(strategy string) (api.Card, bool) {
	for _, c := range catalog.Cards() {
		if c.ID == strategy {
			return c, true
		}
	}
	return api.Card{}, false
}

// schedule is one that runs.
type schedule struct {
	*runner
	*world
	left    Bounds
	began   time.Time
	running sync.WaitGroup
	close   []func() error
	counter interface {
		Count(ctx context.Context, product int64) (int, error)
	}
	two bool
}

func (x *schedule) run(choose func([]move) int) (o Outcome, complete bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range x.clients {
		if err := x.open(ctx, i); err != nil {
			return o, false, err
		}
	}
	synctest.Wait() // until the sessions have begun
	x.began = time.Now()
	if x.left.Failovers == 0 {
		for _, c := range x.clients {
			x.begin(c)
		}
	}
	for range endless {
		synctest.Wait()
		x.mu.Lock()
		moves := x.moves()
		x.mu.Unlock()
		if len(moves) == 0 {
			complete = true
			break
		}
		i := choose(moves)
		if i < 0 {
			break
		}
		x.effect, x.watched = effect{sender: -1}, nil
		x.tick()
		moves[i].perform()
		synctest.Wait()
		if x.watched != nil {
			changes, wrong := x.watched.accesses()
			if err = wrong; err != nil {
				break
			}
			x.effect.data = append(changes, x.effect.data...)
		}
		moves[i].effect = x.effect
	}
	x.end()
	if complete {
		o, err = x.outcome()
	}
	cancel()
	x.running.Wait()
	for _, end := range x.close {
		err = errors.Join(err, end())
	}
	for _, l := range x.links {
		_ = serverEnd{l}.Close()
	}
	time.Sleep(longestEnd)
	return o, complete, err
}

// begin lets a client send its first message. Only a fail-over before that makes a difference: it
// breaks no connection of this client, so the client meets the new server with no error.
func (x *schedule) begin(c *client) {
	x.running.Go(c.sale)
	c.sale = nil
}

// open connects a client, and prepares its sale of one piece.
func (x *schedule) open(ctx context.Context, i int) (err error) {
	b := catalog.Backends{Lease: lease * x.scale}
	for _, s := range x.redis {
		c, err := x.openRedis(i, s)
		if err != nil {
			return err
		}
		x.close = append(x.close, c.Close)
		b.Redlock, b.Redis = append(b.Redlock, c), c
	}
	if slices.Contains(x.backends, "zookeeper") {
		if b.ZooKeeper, err = x.zk.open(i, lease*x.scale); err != nil {
			return err
		}
		x.close = append(x.close, func() error { b.ZooKeeper.Close(); return nil })
	}
	if slices.Contains(x.backends, "etcd") {
		b.Etcd = x.openEtcd(i)
		x.close = append(x.close, func() error { _ = b.Etcd.Close(); return nil }) // it returns that it is closed
	}
	db, err := stock.OpenOn(database{x.world, i}, 10)
	if err != nil {
		return err
	}
	x.close = append(x.close, func() error { return closeDB(db) })
	b.DB = db
	strategy, _ := catalog.Strategy(x.Strategy, b)
	c := x.clients[i]
	x.counter, _ = strategy.(interface {
		Count(ctx context.Context, product int64) (int, error)
	})
	// Each client has its own pause, which is the same in each repetition.
	ctx = locks.WithJitter(ctx, func(below time.Duration) time.Duration {
		return below * time.Duration(2*maxClients-i) / (2*maxClients + 1)
	})
	ctx = locks.WithPace(ctx, x.pace)
	ctx = locks.WithTracer(ctx, func(_ context.Context, e api.Event) { x.step(i, e.Step) })
	c.sale = func() {
		began := time.Now()
		_, err := strategy.Deduct(ctx, stock.Order{
			Product: product, Qty: 1, Owner: letter(i), Wait: wait * x.scale, Lease: lease * x.scale, Fenced: x.Bounds.Fenced,
		})
		x.mu.Lock()
		defer x.mu.Unlock()
		c.err, c.done, c.holding = err, true, false
		c.inVain = errors.Is(err, locks.ErrNotAcquired) && time.Since(began) >= wait*x.scale
	}
	return nil
}

func closeDB(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

func letter(client int) string { return "ABCDE"[client : client+1] }

// step notes that two clients hold the lock at the same time. A client that has written no longer
// counts, because a second holder does no harm from then on.
func (x *schedule) step(i int, step api.Step) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.effect.goesOn = x.effect.goesOn || i == x.effect.sender
	if step == api.Granted || x.clients[i].holding && (step == api.Written || step == api.Released) {
		x.touch("the holders", true)
	}
	switch step {
	case api.Granted:
		x.clients[i].holding = true
		for j, other := range x.clients {
			x.two = x.two || j != i && other.holding && !other.crashed
		}
	case api.Written, api.Released:
		x.clients[i].holding = false
	}
}

// moves lists what can happen next. There is none if all clients have ended, and all messages have
// arrived.
func (x *schedule) moves() (moves []move) {
	running, frozen, mayWait := 0, 0, true
	quiet := true // no client that runs has sent anything
	for i, c := range x.clients {
		if c.crashed {
			continue
		}
		if !c.done { // otherwise, its release may go on in the background
			running++
		}
		if c.sale != nil {
			quiet = false
			moves = append(moves, move{token: "begin-" + letter(i), text: letter(i) + " begins its sale.", perform: x.locked(func() {
				x.wake(i)
				x.begin(c)
			})})
			continue
		}
		if c.paused {
			frozen++
			mayWait = mayWait && c.frozen < longestPause
			continue
		}
		for k, m := range x.from(i) {
			quiet = false
			moves = append(moves, x.deliver(m, k))
		}
	}
	if running == 0 {
		return moves
	}
	if quiet && mayWait {
		moves = append(moves, move{token: "time", text: "Time passes.", perform: x.passTime})
	}
	for i, c := range x.clients {
		if c.paused && c.mayResume && !c.crashed {
			moves = append(moves, move{
				token: "resume-" + letter(i), text: letter(i) + " goes on.",
				perform: x.locked(func() { x.resume(i) }),
			})
		}
	}
	return append(moves, x.faults()...)
}

func (x *schedule) locked(do func()) func() {
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		do()
	}
}

func token(m *message, k int) string {
	if k == 0 {
		return letter(m.client)
	}
	return fmt.Sprintf("%s.%d", letter(m.client), k+1)
}

func (x *schedule) deliver(m *message, k int) move {
	return move{
		token: token(m, k), id: m.id(), sender: letter(m.client), to: m.server, on: m.on,
		text:    fmt.Sprintf("%s: %s on %s.", letter(m.client), m.name, m.server),
		perform: x.locked(func() { x.deliverNow(m) }),
	}
}

func (x *schedule) faults() (moves []move) {
	add := func(left *int, m move, do func()) {
		if *left == 0 {
			return
		}
		m.perform = x.locked(func() {
			*left--
			kind, _, _ := strings.Cut(m.token, "-")
			x.touch(kind, true)
			do()
		})
		moves = append(moves, m)
	}
	for i, c := range x.clients {
		if c.done || c.crashed || c.sale != nil {
			continue
		}
		add(&x.left.Crashes, move{token: "crash-" + letter(i), text: letter(i) + " crashes."}, func() { x.crash(i) })
		if c.paused {
			continue
		}
		sent := x.from(i)
		if len(sent) > 0 {
			add(&x.left.Pauses, move{token: "pause-" + letter(i), text: letter(i) + " is paused."}, func() { x.pause(i) })
		}
		for k, m := range sent {
			what := fmt.Sprintf("%s: %s on %s; ", letter(i), m.name, m.server)
			add(&x.left.Pauses, move{token: "hold-" + token(m, k), id: "hold " + m.id(), to: m.server, text: what + letter(i) + " is paused before it gets the answer."},
				func() { x.pause(i); x.deliverNow(m) })
			add(&x.left.LostReplies, move{token: "lose-" + token(m, k), id: "lose " + m.id(), to: m.server, text: what + "the answer is lost."},
				func() { m.lose(); x.deliverNow(m) })
		}
	}
	for _, s := range x.zk.list() {
		left := &x.left.Expiries
		if x.clients[s.client].crashed {
			left = new(int) // the server ends this session in any case, and at any time
			*left = 1
		}
		name := letter(s.on.client)
		add(left, move{token: "expire-" + name, to: "zookeeper", text: "The session of " + name + " ends."}, func() { x.zk.endSession(s.id) })
	}
	x.etcd.expiries(&x.left.Expiries, add)
	for _, s := range x.redis {
		if slices.ContainsFunc(x.links, func(l *link) bool { return l.peer == s }) {
			add(&x.left.Failovers, move{token: "failover-" + strings.TrimPrefix(s.name, "redis-"), to: s.name, text: s.name + " is replaced by an empty one."},
				func() { x.replace(s) })
		}
	}
	return moves
}

// replace breaks all connections with a server, and deletes its data.
func (x *schedule) replace(s *server) {
	x.touch(s.name, true)
	x.touch(s.name+" connections", true)
	s.empty()
	x.breakLinks(func(l *link) bool { return l.peer == s })
}

// passTime lets the clock go on for a leap, or until a client that runs sends something.
func (x *schedule) passTime() {
	x.effect.all = true
	for _, c := range x.clients {
		c.mayResume = false
	}
	for range leap / tick {
		x.tick()
		time.Sleep(tick * x.scale)
		x.fastForward(tick * x.scale)
		synctest.Wait()
		x.mu.Lock()
		sent := false
		for i, c := range x.clients {
			if c.paused {
				before := c.frozen
				c.frozen += tick
				c.mayResume = c.mayResume || before/leap != c.frozen/leap
			} else if !c.done && !c.crashed {
				sent = sent || len(x.from(i)) > 0
			}
		}
		if sent { // a paused client may go on before each step of the others
			for _, c := range x.clients {
				c.mayResume = c.mayResume || c.paused
			}
		}
		x.mu.Unlock()
		if sent || x.allDone() {
			return
		}
	}
}

func (x *schedule) tick() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.moment++
}

// fastForward lets keys and sessions expire after d.
func (x *schedule) fastForward(d time.Duration) {
	for _, s := range x.redis {
		s.fastForward(d)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.zk.expire(time.Now())
	x.etcd.expire(time.Now())
}

func (x *schedule) allDone() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !slices.ContainsFunc(x.clients, func(c *client) bool { return !c.done && !c.crashed })
}

func (x *schedule) outcome() (o Outcome, err error) {
	x.mu.Lock()
	now, err := x.readRow()
	x.mu.Unlock()
	if err != nil {
		return o, err
	}
	o.Two, o.Left = x.two, now.count
	o.Late = time.Since(x.began) >= lease*x.scale
	if x.counter != nil {
		for range 10 { // each connection that a fault has broken costs a try
			if o.Left, err = x.counter.Count(context.Background(), product); err == nil {
				break
			}
		}
		if err != nil {
			return o, err
		}
	}
	for _, c := range x.clients {
		o.Ends = append(o.Ends, endOf(c))
	}
	return o, nil
}

func endOf(c *client) End {
	switch {
	case c.crashed:
		return Crashed
	case c.err == nil:
		return Sold
	case !locks.NothingTaken(c.err):
		return Unknown
	case c.inVain:
		return Stalled
	default:
		return Aborted
	}
}

func scale(backends []string) time.Duration {
	if slices.Contains(backends, "etcd") {
		return slower
	}
	return 1
}
