package mysqllock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/locks"
	"oversell/locks/lockstest"
	"oversell/stock"
)

// crowd is a combining strategy behind a line, on which its statements can be held up.
type crowd struct {
	t       *testing.T
	db      *gorm.DB // not over the line
	line    *lockstest.Link
	s       *combining
	product int64
}

func newCrowd(t *testing.T, count int) *crowd {
	t.Helper()
	server, err := servers.Server("mysql")
	if err != nil {
		t.Fatal(err)
	}
	line, err := lockstest.NewLink(t.Context(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() })
	db, held := database(t, ""), database(t, line.Addr())
	return &crowd{t, db, line, &combining{db: held, ledger: stock.NewLedger(held), queues: map[int64][]*saleRequest{}}, newProduct(t, db, count)}
}

// sale is what became of a request.
type sale struct {
	stock.Receipt
	err error
}

// buy returns when the request stands in the line, or leads.
func (c *crowd) buy(ctx context.Context, qty int, wait time.Duration) <-chan sale {
	c.t.Helper()
	before, done := c.waiting(), make(chan sale, 1)
	go func() {
		r, err := c.s.Deduct(ctx, stock.Order{Product: c.product, Qty: qty, Owner: newKey(), Wait: wait})
		done <- sale{r, err}
	}()
	soon(c.t, "it stands in the line", func() bool { return c.waiting() == before+1 })
	return done
}

func (c *crowd) waiting() int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return len(c.s.queues[c.product])
}

// lead has one request's UPDATE be held up, so that the next ones gather.
func (c *crowd) lead() (first <-chan sale, free func()) {
	held, free := c.line.HoldNext("UPDATE db_stock")
	done := make(chan sale, 1)
	go func() {
		r, err := c.s.Deduct(c.t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "first", Wait: time.Minute})
		done <- sale{r, err}
	}()
	<-held
	return done, free
}

func (c *crowd) left() int {
	c.t.Helper()
	item, err := stock.NewLedger(c.db).Read(c.t.Context(), c.product)
	if err != nil {
		c.t.Fatal(err)
	}
	return item.Count
}

// updates counts the UPDATE statements of the server so far.
func (c *crowd) updates() (n int) {
	c.t.Helper()
	var name string
	if err := c.db.Raw("SHOW GLOBAL STATUS LIKE 'Com_update'").Row().Scan(&name, &n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// TestCombining: who came while a statement was under way share the next one, each with
// its own answer; whoever hangs up or has no more patience is not among them.
func TestCombining(t *testing.T) {
	c := newCrowd(t, 20)
	first, free := c.lead()
	ctx, hangUp := context.WithCancel(t.Context())
	fickle := c.buy(ctx, 5, time.Minute)
	var rest []<-chan sale
	for _, qty := range []int{1, 3, 2} {
		rest = append(rest, c.buy(t.Context(), qty, time.Minute))
	}
	impatient := c.buy(t.Context(), 5, 50*time.Millisecond)
	if got := <-impatient; !errors.Is(got.err, locks.ErrNotAcquired) {
		t.Errorf("whose wait was over: %v", got.err)
	}
	hangUp()
	if got := <-fickle; !errors.Is(got.err, stock.ErrCancelled) || !errors.Is(got.err, context.Canceled) {
		t.Errorf("who hung up: %v", got.err)
	}
	before := c.updates()
	free()
	if got := <-first; got.err != nil || got.Remaining != 19 {
		t.Errorf("the first: %+v", got)
	}
	for i, want := range []int{18, 15, 13} {
		if got := <-rest[i]; got.err != nil || got.Remaining != want {
			t.Errorf("number %d in the line: %+v, want %d left", i, got, want)
		}
	}
	// The first one's came to the server when it was let go.
	if n := c.updates() - before; n != 2 || c.left() != 13 || c.waiting() != 0 || len(c.s.queues) != 0 {
		t.Errorf("%d statements, %d left, %d wait, %d lines", n, c.left(), c.waiting(), len(c.s.queues))
	}
}

// TestCombiningHandsOn: the one that was told to lead leaves at this moment, and the next
// one leads.
func TestCombiningHandsOn(t *testing.T) {
	c := newCrowd(t, 5)
	var line []*saleRequest
	for range 3 {
		w := &saleRequest{
			Order: stock.Order{Product: c.product, Qty: 1}, ctx: t.Context(), lead: make(chan struct{}), done: make(chan struct{}),
		}
		if leads := c.s.enter(w); leads != (len(line) == 0) {
			t.Errorf("number %d leads: %v", len(line), leads)
		}
		line = append(line, w)
	}
	c.s.quit(line[0], stock.ErrCancelled) // before it took anybody
	close(line[1].lead)
	c.s.quit(line[1], stock.ErrCancelled)
	select {
	case <-line[2].lead:
		c.s.serve(c.product)
	default:
		t.Fatal("nobody leads")
	}
	<-line[2].done
	if line[2].err != nil || c.left() != 4 || len(c.s.queues) != 0 {
		t.Errorf("%v, %d left, %d lines", line[2].err, c.left(), len(c.s.queues))
	}
}

// TestCombiningDoesNotFit: where the stock is too small for all of them, those are served
// in order for whom it is enough.
func TestCombiningDoesNotFit(t *testing.T) {
	c := newCrowd(t, 6)
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
			t.Errorf("number %d in the line: %+v, want %+v", i, got, want)
		}
	}
	if c.left() != 0 {
		t.Errorf("%d left", c.left())
	}
	c.product = 1 << 60
	_, err := c.s.Deduct(t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "lost"})
	if !errors.Is(err, stock.ErrUnknownProduct) {
		t.Errorf("a product that nobody has: %v", err)
	}
}

// TestCombiningUnknown: without an answer nobody in the batch is told that nothing was taken.
func TestCombiningUnknown(t *testing.T) {
	c := newCrowd(t, 20)
	first, free := c.lead()
	rest := []<-chan sale{c.buy(t.Context(), 1, time.Minute), c.buy(t.Context(), 1, time.Minute)}
	held, freeBatch := c.line.HoldNext("UPDATE db_stock")
	free()
	if got := <-first; got.err != nil {
		t.Error(got.err)
	}
	<-held
	c.line.Cut(true)
	freeBatch()
	for _, done := range rest {
		if got := <-done; got.err == nil || locks.NothingTaken(got.err) {
			t.Errorf("without an answer: %v", got.err)
		}
	}
	c.line.Cut(false)
	soon(t, "it sells again", func() bool {
		_, err := c.s.Deduct(t.Context(), stock.Order{Product: c.product, Qty: 1, Owner: "after", Wait: time.Minute})
		return err == nil
	})
}

// TestCombiningCrowd: many on two replicas, who hang up at any moment. What was sold has
// left the shelf, and nobody is left behind.
func TestCombiningCrowd(t *testing.T) {
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
		t.Errorf("%d sold, %d unsure, %d left of %d, %v", sold, unsure, item.Count, stocked, err)
	}
	for _, s := range replicas {
		if c, ok := s.(*combining); !ok || len(c.queues) != 0 {
			t.Error("a line is left behind")
		}
	}
}
