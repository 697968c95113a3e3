package explore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/stock"
)

// schedule is one that runs.
type schedule struct {
	*runner
	*world
	left    Bounds
	began   time.Time
	running sync.WaitGroup
	opened  []catalog.Backends
	counter locks.StockHolder // nil if the row has the whole stock
	two     bool
}

func (x *schedule) run(choose func([]move) int) (o Ending, complete bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range x.clients {
		if err := x.open(ctx, i); err != nil {
			return o, false, err
		}
	}
	synctest.Wait() // until the sessions have begun
	x.beginAll()
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
	x.endClients(cancel)
	synctest.Wait() // a library may still be connecting in the background
	x.closeLinks()
	time.Sleep(longestEnd)
	return o, complete, err
}

// endClients ends the goroutines of the clients, and closes their connections.
func (x *schedule) endClients(cancel context.CancelFunc) {
	cancel()
	x.running.Wait()
	for _, b := range x.opened {
		b.Close()
	}
}

// closeLinks closes the connections at the servers.
func (x *schedule) closeLinks() {
	x.mu.Lock()
	links := slices.Clone(x.links)
	x.mu.Unlock()
	for _, l := range links {
		_ = serverEnd{link: l}.Close()
	}
}

// beginAll lets all clients begin, unless a fail-over may come before: it breaks no connection of such a
// client, so the client meets the new server with no error.
func (x *schedule) beginAll() {
	x.began = time.Now()
	if x.left.Failovers > 0 {
		return
	}
	for _, c := range x.clients {
		x.begin(c)
	}
}

// begin lets a client send its first message.
func (x *schedule) begin(c *client) {
	x.running.Go(c.sale)
	c.sale = nil
}

// open connects a client, and prepares its sale of one piece.
func (x *schedule) open(ctx context.Context, i int) (err error) {
	b := catalog.Backends{Lease: lease}
	for _, s := range x.redis {
		c, err := x.openRedis(i, s)
		if err != nil {
			return err
		}
		b.Redlock, b.Redis = append(b.Redlock, c), c
	}
	if slices.Contains(x.lock.Card.Backends, "zookeeper") {
		if b.ZooKeeper, err = x.zk.open(i, lease); err != nil {
			return err
		}
	}
	if b.DB, err = stock.OpenOn(database{x.world, i}, 10); err != nil {
		return err
	}
	x.opened = append(x.opened, b)
	strategy := x.lock.build(b)
	c := x.clients[i]
	x.counter, _ = strategy.(locks.StockHolder)
	// Each client has its own pause, which is the same in each repetition.
	ctx = locks.WithJitter(ctx, func(below time.Duration) time.Duration {
		return below * time.Duration(2*maxClients-i) / (2*maxClients + 1)
	})
	ctx = locks.WithTracer(ctx, func(_ context.Context, e api.Event) { x.step(i, e.Step) })
	c.sale = func() {
		began := time.Now()
		_, err := strategy.Deduct(ctx, stock.Order{
			Product: product, Qty: 1, Owner: letter(i), Wait: wait, Lease: lease, Fenced: x.Bounds.Fenced,
		})
		x.mu.Lock()
		defer x.mu.Unlock()
		x.hold(i, false)
		c.err, c.done = err, true
		c.inVain = errors.Is(err, locks.ErrNotAcquired) && time.Since(began) >= wait
	}
	return nil
}

func letter(client int) string { return "ABCDE"[client : client+1] }

// step notes the grants, and whether two clients hold the lock at the same time. A client that has written
// no longer counts, because a second holder does no harm from then on.
func (x *schedule) step(i int, step api.Step) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.effect.goesOn = x.effect.goesOn || i == x.effect.sender
	switch step {
	case api.Granted:
		x.hold(i, true)
		for j, other := range x.clients {
			x.two = x.two || j != i && other.holding
		}
	case api.Written, api.Released:
		x.hold(i, false)
	}
}

// passTime lets the clock go on for a leap, or until a client that runs sends something.
func (x *schedule) passTime() {
	x.effect.all = true
	for _, c := range x.clients {
		c.mayResume = false
	}
	for range leap / tick {
		x.tick()
		time.Sleep(tick)
		x.fastForward(tick)
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
}

func (x *schedule) allDone() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !slices.ContainsFunc(x.clients, func(c *client) bool { return !c.done && !c.crashed })
}
