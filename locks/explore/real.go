package explore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks/redislock"
	"oversell/stock"
)

// Servers are the addresses of real servers, on which a schedule can be repeated. A replay deletes all
// their data, so they must be of no other use.
type Servers struct {
	Redis     []string // a URL each
	ZooKeeper string   // host:port
	MySQL     string   // the data source name of a database that has the tables
}

// RunsOn returns an error if the schedules of a strategy cannot be repeated on real servers.
func RunsOn(strategy string) error {
	card, _ := cardOf(strategy)
	if can, _ := OnMySQL(strategy); can {
		return fmt.Errorf("explore: %s needs only a real MySQL", strategy)
	}
	if slices.Contains(card.Backends, "etcd") {
		return fmt.Errorf("explore: a schedule of %s cannot be repeated on a real etcd: its connection has many goroutines, whose order no schedule decides", strategy)
	}
	return nil
}

// planned is a step of a trail, as it happened in memory.
type planned struct {
	move
	at       time.Duration // since the beginning of the schedule
	messages []move        // that can be delivered in its state
}

// slowMotion is how many times longer leases, waits and pauses are on real servers, so that the time
// that each message takes there does not matter.
const slowMotion = 5

// ErrTrail says that a trail is none of its strategy, within its bounds.
var ErrTrail = errors.New("the trail does not fit in memory")

// longestWait is how long a client may take on a real server until it has sent what it sends in memory.
const longestWait = 5 * time.Second

// ReplayOn runs a schedule again with the same code, on real servers and with the real clock. It runs
// it in memory first, to learn which messages the clients send, and how much time passes before each.
// Then it holds back each message on its way to the real server, until it is this message's turn.
// It returns the outcomes of both. err says where the real run left the trail.
func ReplayOn(ctx context.Context, t Trial, trail []string, on Servers) (steps []Step, memory, really Outcome, err error) {
	r, err := newRunner(t)
	if err != nil {
		return nil, memory, really, err
	}
	r.scale, r.pace = slowMotion, slowMotion
	plan, memory, err := r.rehearse(trail)
	if err != nil {
		return nil, memory, really, fmt.Errorf("%w: %w", ErrTrail, err)
	}
	for _, p := range plan {
		steps = append(steps, p.step())
	}
	really, err = r.runOn(ctx, plan, on)
	return steps, memory, really, err
}

// rehearse runs a trail in memory. In slow motion, some clients send a little earlier or later. So time
// passes when the trail cannot go on without, and not when a client has sent something before.
func (r *runner) rehearse(trail []string) (plan []planned, o Outcome, err error) {
	var wrong error
	var began time.Time // the clock is that of the schedule
	o, finished, err := r.run(func(moves []move) int {
		if began.IsZero() {
			began = time.Now()
		}
		find := func(token string) int { return slices.IndexFunc(moves, func(m move) bool { return m.token == token }) }
		passed := find("time")
		for len(trail) > 0 && trail[0] == "time" && passed < 0 {
			trail = trail[1:]
		}
		i := passed
		if len(trail) > 0 {
			if next := find(trail[0]); next >= 0 {
				i, trail = next, trail[1:]
			}
		}
		if i < 0 {
			wrong = fmt.Errorf("after %d steps, the trail goes on with %v, but possible are %s", len(plan), trail, texts(moves))
			return -1
		}
		plan = append(plan, planned{moves[i], time.Since(began), messagesOf(moves)})
		return i
	})
	if err == nil && !finished {
		err = wrong
	}
	if err == nil && len(trail) > 0 {
		err = fmt.Errorf("the schedule ended before the steps %v", trail)
	}
	return plan, o, err
}

func messagesOf(moves []move) []move {
	return slices.DeleteFunc(slices.Clone(moves), func(m move) bool { return m.sender == "" })
}

// reality is what a world has in place of its servers in memory.
type reality struct {
	db    *sql.DB
	redis []redis.UniversalClient
	zk    string
	// failed is an error of a fault.
	failed error
}

func openReality(ctx context.Context, on Servers) (*reality, error) {
	y := &reality{zk: on.ZooKeeper}
	connector, err := stock.Connector(on.MySQL)
	if err != nil {
		return nil, err
	}
	y.db = sql.OpenDB(connector)
	_, err = y.db.ExecContext(ctx, "UPDATE db_stock SET count = ?, version = 0, fence = 0 WHERE id = ?", initialCount, product)
	for _, url := range on.Redis {
		c, opened := redislock.Open(url, 2)
		if opened != nil {
			err = errors.Join(err, opened)
			continue
		}
		y.redis = append(y.redis, c)
		err = errors.Join(err, c.FlushAll(ctx).Err(), c.ScriptFlush(ctx).Err())
	}
	if err == nil && on.ZooKeeper != "" {
		err = emptyZooKeeper(on.ZooKeeper)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("explore: prepare the real servers: %w", err), y.Close())
	}
	return y, nil
}

func (y *reality) Close() error {
	err := y.db.Close()
	for _, c := range y.redis {
		err = errors.Join(err, c.Close())
	}
	return err
}

func connectTo(addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: longestWait}
	return d.DialContext(context.Background(), "tcp", addr)
}

// relay connects a link with a real server. first, if set, forwards the first answer.
func (l *link) relay(addr string, first func(*link, io.Reader) error) error {
	conn, err := connectTo(addr)
	if err != nil {
		return fmt.Errorf("explore: connect with a real server: %w", err)
	}
	go func() {
		_, _ = io.Copy(conn, serverEnd{l})
		_ = conn.Close()
	}()
	go func() {
		if first == nil || first(l, conn) == nil {
			_, _ = io.Copy(serverEnd{l}, conn)
		}
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		l.breakNow()
	}()
	return nil
}

// runOn runs a plan on real servers.
func (r *runner) runOn(ctx context.Context, plan []planned, on Servers) (o Outcome, err error) {
	y, err := openReality(ctx, on)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, y.Close()) }()
	w := newWorld(r.Bounds.Clients, r.servers())
	w.real = y
	for i, s := range w.redis {
		o, err := redis.ParseURL(on.Redis[i])
		if err != nil {
			return Outcome{}, err
		}
		s.files, s.real = r.scripts, &realRedis{y, on.Redis[i], o.Addr, y.redis[i]}
	}
	x := &schedule{runner: r, world: w, left: r.Bounds}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range x.clients {
		if err := x.open(ctx, i); err != nil {
			return o, errors.Join(err, x.shutDown(cancel))
		}
	}
	if err := x.sessionsBegin(ctx); err != nil {
		return o, errors.Join(err, x.shutDown(cancel))
	}
	x.beginAll()
	err = x.follow(ctx, plan)
	x.mu.Lock()
	err = errors.Join(err, y.failed)
	x.mu.Unlock()
	x.end()
	if err == nil {
		o, err = x.outcome()
	}
	return o, errors.Join(err, x.shutDown(cancel))
}

// shutDown ends the goroutines of the clients, and closes all connections.
func (x *schedule) shutDown(cancel context.CancelFunc) error {
	defer x.closeLinks()
	return x.endClients(cancel)
}

// sessionsBegin waits until each client has its session of ZooKeeper.
func (x *schedule) sessionsBegin(ctx context.Context) error {
	if x.real.zk == "" || !slices.Contains(x.backends, "zookeeper") {
		return nil
	}
	return x.until(ctx, func() string {
		if n := len(x.zk.sessions); n < len(x.clients) {
			return fmt.Sprintf("%d of %d sessions have begun", n, len(x.clients))
		}
		return ""
	})
}

// until waits until problem returns an empty text. It returns an error with the text if that takes
// longer than longestWait.
func (x *schedule) until(ctx context.Context, problem func() string) error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		x.mu.Lock()
		text := problem()
		x.mu.Unlock()
		switch {
		case text == "":
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(began) > longestWait:
			return fmt.Errorf("for %v: %s", longestWait, text)
		}
	}
}

// follow performs the moves of a plan, and waits for the ends of all clients.
func (x *schedule) follow(ctx context.Context, plan []planned) error {
	for i, p := range plan {
		time.Sleep(time.Until(x.began.Add(p.at)))
		var next move
		err := x.until(ctx, func() (missing string) {
			x.unblock(p)
			x.repeat(plan[:i], p)
			next, missing = p.among(x.moves())
			return missing
		})
		if err == nil {
			err = x.performReally(ctx, next)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s %w", i+1, p.text, err)
		}
	}
	return x.until(ctx, func() string {
		if slices.ContainsFunc(x.clients, func(c *client) bool { return !c.done && !c.crashed }) {
			return "a client goes on, although the trail has ended"
		}
		return ""
	})
}

// unblock delivers what a client has sent on the same connection before a planned message, but has not
// yet sent in memory: a renewal.
func (x *schedule) unblock(p planned) {
	for _, m := range p.messages {
		behind := slices.IndexFunc(x.inFlight, func(other *message) bool { return other.id() == m.id })
		if behind < 0 || x.inFlight[behind].on == nil {
			continue
		}
		for _, other := range slices.Clone(x.inFlight) {
			if wanted := x.inFlight[behind]; other.on == wanted.on && other.before(wanted) {
				x.deliverNow(other)
				return // the rest in the next round
			}
		}
	}
}

// repeat delivers a message that a client sends more often than in memory, and without whose answer it
// does not send a planned message. If the check of a renewal was taken for the same check of the release,
// the one of the release is still to come.
func (x *schedule) repeat(done []planned, p planned) {
	for _, m := range p.messages {
		if slices.ContainsFunc(x.inFlight, func(other *message) bool { return other.id() == m.id }) {
			continue
		}
		for _, other := range slices.Clone(x.inFlight) {
			again := func(d planned) bool { return d.sender == m.sender && d.id == other.nth(other.n-1) }
			if letter(other.client) == m.sender && slices.ContainsFunc(done, again) {
				x.deliverNow(other)
				return // the rest in the next round
			}
		}
	}
}

// among returns the planned move, or says what is missing. Messages that the clients have not yet sent
// in memory do no harm: each step takes some time here, so a pause in the code may end earlier.
func (p planned) among(moves []move) (found move, missing string) {
	for _, m := range p.messages {
		if !slices.ContainsFunc(moves, m.same) {
			return found, fmt.Sprintf("possible are %s, and in memory also %s", texts(moves), texts([]move{m}))
		}
	}
	i := slices.IndexFunc(moves, p.same)
	if i < 0 && p.token == "time" {
		return p.move, ""
	}
	if i < 0 {
		return found, fmt.Sprintf("only possible are %s", texts(moves))
	}
	return moves[i], ""
}

// performReally returns when the server has answered, and the client has read the answer, unless it is
// paused.
func (x *schedule) performReally(ctx context.Context, m move) error {
	if m.token == "time" { // the clock goes on until the next step
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, c := range x.clients {
			c.mayResume = true
		}
		return nil
	}
	x.tick()
	before := 0
	if m.on != nil {
		before = m.on.received
	}
	m.perform()
	return x.until(ctx, func() string {
		l := m.on
		if l == nil || l.broken || l.received > before && (len(l.toCli) == 0 || l.mute || x.clients[l.client].paused) {
			return ""
		}
		return "the server has not answered"
	})
}

// realRedis is a Redis that runs on its own.
type realRedis struct {
	*reality
	url, addr string
	client    redis.UniversalClient
}

// empty deletes all data.
func (r *realRedis) empty() {
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	r.failed = errors.Join(r.failed, r.client.FlushAll(ctx).Err())
}

// exec executes a statement of a client.
func (y *reality) exec(query string, args []any) (affected int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	result, err := y.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads the row of the product.
func (y *reality) row() (r row, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	err = y.db.QueryRowContext(ctx, "SELECT count, version, fence FROM db_stock WHERE id = ?", product).Scan(&r.count, &r.version, &r.fence)
	return r, err
}
