package mysqllock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
	"oversell/trial/lockstest"
)

// testbed has a combining strategy, whose statements run over a link that can delay them.
type testbed struct {
	t       *testing.T
	db      *gorm.DB // not over the link
	link    *lockstest.Link
	s       *combining
	product int64
}

func newTestbed(t *testing.T, count int) *testbed {
	t.Helper()
	link, err := lockstest.NewLink(t.Context(), address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	db, held := database(t, ""), database(t, link.Addr())
	return &testbed{t, db, link, &combining{db: held, ledger: stock.NewLedger(held), patience: time.Hour, queues: map[int64][]*saleRequest{}, batches: map[int64]int{}}, newProduct(t, db, count)}
}

// sale is the outcome of a request.
type sale struct {
	stock.Receipt
	err error
}

// buy sends a request, waits until the queue has it, and returns the channel for its outcome.
func (c *testbed) buy(ctx context.Context, qty int, wait time.Duration) <-chan sale {
	c.t.Helper()
	before, done := c.waiting(), make(chan sale, 1)
	go func() {
		r, err := c.s.Deduct(ctx, stock.Order{Product: c.product, Qty: qty, Owner: newKey(), Wait: wait})
		done <- sale{r, err}
	}()
	soon(c.t, "the request is in the queue", func() bool { return c.waiting() == before+1 })
	return done
}

func (c *testbed) waiting() int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return len(c.s.queues[c.product])
}

// lead starts a first request and delays its UPDATE until free is called. Later requests wait in
// the queue until then.
func (c *testbed) lead() (first <-chan sale, free func()) {
	held, free := c.link.HoldNext("UPDATE db_stock")
	done := make(chan sale, 1)
	go func() {
		r, err := c.s.Deduct(c.t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "first", Wait: time.Minute})
		done <- sale{r, err}
	}()
	<-held
	return done, free
}

func (c *testbed) left() int {
	c.t.Helper()
	item, err := stock.NewLedger(c.db).Read(c.t.Context(), c.product)
	if err != nil {
		c.t.Fatal(err)
	}
	return item.Count
}

// TestCombining checks that requests that arrive during an UPDATE share the next UPDATE, each with
// its own receipt. Cancelled and timed-out requests must not be part of that UPDATE.
func TestCombining(t *testing.T) {
	c := newTestbed(t, 20)
	first, free := c.lead()
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := c.buy(ctx, 5, time.Minute)
	var rest []<-chan sale
	updates := make(chan string, 10)
	counted := stock.WithWatch(t.Context(), stock.Watch{Statement: func(_ context.Context, query string) func(error) {
		updates <- query
		return func(error) {}
	}})
	for _, qty := range []int{1, 3, 2} {
		rest = append(rest, c.buy(counted, qty, time.Minute))
	}
	timedOut := c.buy(t.Context(), 5, 50*time.Millisecond)
	if got := <-timedOut; !errors.Is(got.err, locks.ErrNotAcquired) {
		t.Errorf("a request whose wait is over: %v", got.err)
	}
	cancel()
	if got := <-cancelled; !errors.Is(got.err, stock.ErrCancelled) || !errors.Is(got.err, context.Canceled) {
		t.Errorf("a cancelled request: %v", got.err)
	}
	free()
	if got := <-first; got.err != nil || got.Remaining != 19 {
		t.Errorf("the first: %+v", got)
	}
	for i, want := range []int{18, 15, 13} {
		if got := <-rest[i]; got.err != nil || got.Remaining != want {
			t.Errorf("number %d in the queue: %+v, want %d left", i, got, want)
		}
	}
	if n := len(updates); n != 1 || c.left() != 13 || c.waiting() != 0 || len(c.s.queues) != 0 {
		t.Errorf("%d statements, %d left, %d wait, %d queues", n, c.left(), c.waiting(), len(c.s.queues))
	}
}

// TestCombiningPatience lets further batches begin while the first waits, but not more than mostBatches.
func TestCombiningPatience(t *testing.T) {
	c := newTestbed(t, 5)
	c.s.patience = time.Millisecond
	var sales [mostBatches]<-chan sale
	var frees [mostBatches]func()
	for i := range sales {
		sales[i], frees[i] = c.lead()
	}
	if got := <-c.buy(t.Context(), 1, 50*time.Millisecond); !errors.Is(got.err, locks.ErrNotAcquired) {
		t.Errorf("one more batch: %+v", got)
	}
	for i := len(sales) - 1; i >= 0; i-- {
		frees[i]()
		if got := <-sales[i]; got.err != nil || got.Remaining != i+1 {
			t.Errorf("batch %d: %+v", i, got)
		}
	}
	soon(t, "nothing is left of the batches", func() bool {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		return len(c.s.queues) == 0 && len(c.s.batches) == 0
	})
}

// TestCombiningNextLeader lets the request that was chosen as the next leader leave the queue
// before it sells. The request behind it in the queue must lead instead.
func TestCombiningNextLeader(t *testing.T) {
	c := newTestbed(t, 5)
	var queue []*saleRequest
	for range 3 {
		w := &saleRequest{
			Order: stock.Order{Product: c.product, Qty: 1}, ctx: t.Context(), lead: make(chan struct{}), done: make(chan struct{}),
		}
		if leads := c.s.enter(w); leads != (len(queue) == 0) {
			t.Errorf("number %d leads: %v", len(queue), leads)
		}
		queue = append(queue, w)
	}
	c.s.quit(queue[0], stock.ErrCancelled) // before a batch takes the request
	close(queue[1].lead)
	c.s.quit(queue[1], stock.ErrCancelled)
	select {
	case <-queue[2].lead:
		c.s.serve(c.product)
	default:
		t.Fatal("no request leads")
	}
	<-queue[2].done
	if queue[2].err != nil || c.left() != 4 || len(c.s.queues) != 0 {
		t.Errorf("%v, %d left, %d queues", queue[2].err, c.left(), len(c.s.queues))
	}
}

// TestCombiningDoesNotFit checks that requests are served in order of arrival if the stock is too
// small for the batch.
func TestCombiningDoesNotFit(t *testing.T) {
	c := newTestbed(t, 6)
	first, free := c.lead()
	var rest []<-chan sale
	for _, qty := range []int{2, 4, 2, 1, 1} {
		rest = append(rest, c.buy(t.Context(), qty, time.Minute))
	}
	free()
	if got := <-first; got.err != nil {
		t.Error(got.err)
	}
	for i, want := range []struct {
		left int
		err  error
	}{{3, nil}, {3, stock.ErrSoldOut}, {1, nil}, {0, nil}, {0, stock.ErrSoldOut}} {
		if got := <-rest[i]; !errors.Is(got.err, want.err) || got.Remaining != want.left {
			t.Errorf("number %d in the queue: %+v, want %+v", i, got, want)
		}
	}
	if c.left() != 0 {
		t.Errorf("%d left", c.left())
	}
	c.product = 1 << 60
	_, err := c.s.Deduct(t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "lost"})
	if !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("an unknown product: %v", err)
	}
}

// TestCombiningSingly lets the first of several single sales fail, because its connection ends or because
// another client sells. The requests after it must not be sold out by that.
func TestCombiningSingly(t *testing.T) {
	for _, test := range []struct {
		name    string
		quarrel func(c *testbed)
		qtys    []int
		want    []error
		left    int
	}{
		{"connection ends", func(c *testbed) { c.link.Cut(true); c.link.Cut(false) }, []int{2, 1, 1, 1}, []error{nil, nil, nil}, 0},
		{"another client sells", func(c *testbed) {
			if err := c.db.Exec("UPDATE db_stock SET count = count - 1 WHERE id = ?", c.product).Error; err != nil {
				c.t.Error(err)
			}
		}, []int{3, 1, 1, 1}, []error{nil, nil, stock.ErrSoldOut}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newTestbed(t, 4)
			first, free := c.lead()
			var rest []<-chan sale
			for _, qty := range test.qtys {
				rest = append(rest, c.buy(t.Context(), qty, time.Minute))
			}
			batch, freeBatch := c.link.HoldNext("UPDATE db_stock")
			free()
			<-first
			<-batch
			single, freeSingle := c.link.HoldNext("UPDATE db_stock")
			freeBatch()
			<-single
			test.quarrel(c)
			freeSingle()
			if got := <-rest[0]; got.err == nil {
				t.Errorf("the first: %+v", got)
			}
			for i, want := range test.want {
				if got := <-rest[i+1]; !errors.Is(got.err, want) {
					t.Errorf("number %d after it: %+v, want %v", i+1, got, want)
				}
			}
			if c.left() != test.left {
				t.Errorf("%d left, want %d", c.left(), test.left)
			}
		})
	}
}

// TestCombiningPanic lets the leader of a batch panic. Its batch must end, and the product must be for sale.
func TestCombiningPanic(t *testing.T) {
	c := newTestbed(t, 5)
	first, free := c.lead()
	panics := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) {
		if e.Step == api.Writing {
			panic("a bug")
		}
	})
	recovered := make(chan any, 1)
	go func() {
		defer func() { recovered <- recover() }()
		_, _ = c.s.Deduct(panics, stock.Order{Product: c.product, Qty: 1, Owner: "leader", Wait: time.Minute})
	}()
	soon(t, "the leader is in the queue", func() bool { return c.waiting() == 1 })
	second := c.buy(t.Context(), 1, time.Minute)
	free()
	<-first
	if got := <-recovered; got != "a bug" {
		t.Errorf("the leader: %v", got)
	}
	if got := <-second; got.err == nil || locks.NothingTaken(got.err) {
		t.Errorf("the other request of the batch: %+v", got)
	}
	if _, err := c.s.Deduct(t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "after", Wait: time.Minute}); err != nil {
		t.Error(err)
	}
}

// TestCombiningUnknown checks that without an answer, the outcome of a whole batch is unknown.
func TestCombiningUnknown(t *testing.T) {
	c := newTestbed(t, 20)
	first, free := c.lead()
	rest := []<-chan sale{c.buy(t.Context(), 1, time.Minute), c.buy(t.Context(), 1, time.Minute)}
	held, freeBatch := c.link.HoldNext("UPDATE db_stock")
	free()
	if got := <-first; got.err != nil {
		t.Error(got.err)
	}
	<-held
	c.link.Cut(true)
	freeBatch()
	for _, done := range rest {
		if got := <-done; got.err == nil || locks.NothingTaken(got.err) {
			t.Errorf("without an answer: %v", got.err)
		}
	}
	c.link.Cut(false)
	soon(t, "the strategy sells again", func() bool {
		_, err := c.s.Deduct(t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "after", Wait: time.Minute})
		return err == nil
	})
}

// TestCombiningCancellations cancels concurrent requests on two replicas at random moments. All
// sales must be taken from the stock, and no queue may be left.
func TestCombiningCancellations(t *testing.T) {
	db, other := database(t, ""), database(t, "")
	replicas := []locks.Strategy{Combining(db), Combining(other)}
	const stocked = 400
	product := newProduct(t, db, stocked)
	var mu sync.Mutex
	var sold, unsure int
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(4*time.Millisecond))
				if i%2 == 0 {
					ctx, cancel = context.WithCancel(t.Context())
				}
				o := stock.Order{Product: product, Qty: 1 + i%3, Owner: newKey(), Wait: time.Minute}
				_, err := replicas[i%4/2].Deduct(ctx, o)
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					sold += o.Qty
				case !locks.NothingTaken(err):
					unsure++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	item, err := stock.NewLedger(db).Read(t.Context(), product)
	if err != nil || sold != stocked-item.Count || unsure != 0 || item.Count != 0 {
		t.Errorf("%d sold, %d unknown, %d left of %d, %v", sold, unsure, item.Count, stocked, err)
	}
	for _, s := range replicas {
		if c, ok := s.(*combining); !ok || len(c.queues) != 0 {
			t.Error("a queue is left")
		}
	}
}
