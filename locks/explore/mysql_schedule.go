package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/stock"
)

// mysqlSchedule is a schedule on a real MySQL. When it has ended, its product and its connections serve
// the next one.
type mysqlSchedule struct {
	*mysqlExecutor
	product int64
	clients []*mysqlClient
	counter locks.StockHolder // nil if the row has the whole stock

	mu      sync.Mutex
	news               // of the clients
	running bool       // statements wait for their delivery
	effect  effect     // of the move that is performed
	writes  [][]string // the tables of each write
	two     bool
	failed  error // of the move that is performed
}

// mysqlClient is a process of its own, which buys one piece. The mu of its schedule protects it.
type mysqlClient struct {
	*mysqlSchedule
	index int
	db    *gorm.DB

	now     *statement // waits for its delivery or its answer; nil while the client's code runs
	sent    map[string]int
	history []executed
	done    bool
	err     error
	holding bool
	giveUp  context.CancelFunc
}

func (x *mysqlExecutor) newSchedule() (*mysqlSchedule, error) {
	x.executing.Lock()
	defer x.executing.Unlock()
	s := &mysqlSchedule{mysqlExecutor: x, news: newNews()}
	for i := range x.Bounds.Clients {
		c := &mysqlClient{mysqlSchedule: s, index: i}
		db, err := stock.OpenOn(gatedConnector{x.connector, c}, 10)
		if err != nil {
			return nil, err
		}
		c.db, s.clients = db, append(s.clients, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	item := stock.Item{ProductCode: "explore", StockCode: "001"}
	if err := x.admin.WithContext(ctx).Create(&item).Error; err != nil {
		return nil, fmt.Errorf("explore: add a product: %w", err)
	}
	s.product = item.ID
	x.all = append(x.all, s)
	return s, nil
}

// close deletes the product, and closes the connections of the clients.
func (s *mysqlSchedule) close() error {
	err := s.reset(s.product, "DELETE FROM db_stock WHERE id = ?")
	for _, c := range s.clients {
		catalog.Backends{DB: c.db}.Close()
	}
	return err
}

// run also executes the rest of a schedule that is ended early, so that all clients end.
func (s *mysqlSchedule) run(choose func([]move) int) (o Ending, complete bool, err error) {
	full := fmt.Sprintf("UPDATE db_stock SET count = %d, version = 0, fence = 0 WHERE id = ?", initialCount)
	if err := s.reset(s.product, full); err != nil {
		return o, false, err
	}
	s.begin()
	complete = true
	for n := 0; ; n++ {
		moves, err := s.settle()
		if err != nil {
			return o, false, err
		}
		if len(moves) == 0 {
			break
		}
		next := 0
		if complete {
			next = choose(moves)
			complete = next >= 0 && n < endless
		}
		if err := s.perform(&moves[max(next, 0)]); err != nil {
			return o, false, err
		}
	}
	if complete {
		o, err = s.outcome()
	}
	return o, complete, err
}

// begin starts the sales.
func (s *mysqlSchedule) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.writes, s.two = true, nil, false
	for _, c := range s.clients {
		strategy := s.lock.build(catalog.Backends{DB: c.db, Lease: noTimeout})
		s.counter, _ = strategy.(locks.StockHolder)
		ctx, cancel := context.WithCancel(context.Background())
		// Random pauses decide nothing here (see rest).
		ctx = locks.WithJitter(ctx, func(time.Duration) time.Duration { return 0 })
		ctx = locks.WithTracer(ctx, func(_ context.Context, e api.Event) { s.step(c, e.Step) })
		*c = mysqlClient{mysqlSchedule: s, index: c.index, db: c.db, sent: map[string]int{}, giveUp: cancel}
		go func() {
			defer cancel()
			_, err := strategy.Deduct(ctx, stock.Order{
				Product: s.product, Qty: 1, Owner: letter(c.index), Wait: noTimeout, Lease: noTimeout, Fenced: s.Bounds.Fenced,
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			c.err, c.done, c.holding = err, true, false
			s.change()
		}()
	}
}

// step notes that two clients hold the lock at the same time, as in memory.
func (s *mysqlSchedule) step(c *mysqlClient, step api.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step == api.Granted || c.holding && (step == api.Written || step == api.Released) {
		s.touch("the holders", true)
	}
	switch step {
	case api.Granted:
		c.holding = true
		s.two = s.two || slices.ContainsFunc(s.clients, func(other *mysqlClient) bool { return other != c && other.holding })
	case api.Written, api.Released:
		c.holding = false
	}
}

// touch notes that the move reads or writes data. The caller must hold mu.
func (s *mysqlSchedule) touch(data string, writes bool) {
	s.effect.data = append(s.effect.data, access{to: data, writes: writes})
}

// moves lists the statements that can be delivered. The caller must hold mu.
func (s *mysqlSchedule) moves() (moves []move) {
	for i, c := range s.clients {
		if c.done || c.now == nil || c.now.delivered || c.polls() {
			continue
		}
		moves = append(moves, move{
			identity: identity{kind: Statement, client: i, name: c.now.query, n: c.now.n},
			server:   mysqlServer, what: c.now.text,
			perform: func() { s.failed = c.deliver() },
		})
	}
	return moves
}

// perform delivers a statement. It returns when no client can go on by itself.
func (s *mysqlSchedule) perform(m *move) error {
	s.mu.Lock()
	s.effect = effect{sender: -1}
	s.mu.Unlock()
	m.perform()
	if err := cmp.Or(s.failed, s.rest()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.now != nil && c.now.delivered && c.index == s.effect.sender { // it waits for a lock
			s.affect(c.now.accesses(true))
		}
	}
	m.effect = s.effect
	return nil
}

// deliver lets the server execute the statement of a client. It returns when the answer has come, or
// when the statement waits for a lock.
func (c *mysqlClient) deliver() error {
	c.executing.Lock()
	defer c.executing.Unlock()
	c.mu.Lock()
	c.history = append(c.history, executed{c.now.place, c.now.tables, len(c.writes)})
	c.effect.sender = c.index
	c.now.delivered = true
	close(c.now.gate)
	c.mu.Unlock()
	return c.answered()
}

func (s *mysqlSchedule) outcome() (o Ending, err error) {
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	o.Two = s.two
	for _, c := range s.clients {
		o.Ends = append(o.Ends, endOf(&client{err: c.err}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	if s.counter != nil {
		o.Left, err = s.counter.Count(ctx, s.product)
	} else {
		err = s.admin.WithContext(ctx).Raw("SELECT count FROM db_stock WHERE id = ?", s.product).Row().Scan(&o.Left)
	}
	return o, err
}
