package mysqllock

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Combining combines the requests that wait in one replica into one UPDATE (flat combining:
// Hendler, Incze, Shavit, Tzafrir, SPAA 2010; group commit). The first request is the leader. The
// leader takes all waiting requests as a batch, and deducts the sum of their quantities. Requests
// that arrive during the batch wait, and the first of them leads the next batch. The busier a
// replica is, the fewer statements a sale costs.
func Combining(db *gorm.DB) locks.Strategy {
	return &combining{db: db, ledger: stock.NewLedger(db), patience: 2 * time.Millisecond, queues: map[int64][]*saleRequest{}, batches: map[int64]int{}}
}

type combining struct {
	db     *gorm.DB
	ledger *stock.Ledger
	// patience is the time for a batch, after which another one may begin. A statement that waits for the disk has freed
	// the row by then, and InnoDB syncs both statements together.
	patience time.Duration

	mu      sync.Mutex
	queues  map[int64][]*saleRequest // the waiting requests of each product that has a leader
	batches map[int64]int            // the batches of each product that are being sold, at most mostBatches
}

const (
	largestBatch = 256
	// mostBatches limits the connections that one product uses while its row is locked for long.
	mostBatches = 4
	// batchTimeout limits the time for the statements of a batch, which no caller can cancel.
	batchTimeout = 5 * time.Second
)

// saleRequest is a queued request. In a batch, only the leader writes to it, until it closes done.
type saleRequest struct {
	stock.Order
	ctx        context.Context //nolint:containedctx // the leader traces a step of this request
	queued     time.Time
	lead, done chan struct{}
	receipt    stock.Receipt
	err        error
}

func (s *combining) Deduct(ctx context.Context, o stock.Order) (stock.Receipt, error) {
	key := api.Key(o.Product)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	// Work before the request enters the queue: work during the UPDATE would delay the whole batch.
	if err := locks.Work(ctx, o.Work); err != nil {
		return stock.Receipt{}, err
	}
	w := &saleRequest{Order: o, ctx: ctx, queued: time.Now(), lead: make(chan struct{}), done: make(chan struct{})}
	if s.enter(w) || s.await(w) {
		s.serve(o.Product)
	}
	<-w.done // a request in a batch gets the outcome of the batch, even if its wait is over
	if w.err == nil {
		locks.Trace(ctx, api.Written, key, o.Owner, 0)
	}
	return w.receipt, w.err
}

func (s *combining) enter(w *saleRequest) (leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, led := s.queues[w.Product]
	s.queues[w.Product] = append(queue, w)
	return !led
}

// await returns true when w must lead, and false when w is done or has left the queue.
func (s *combining) await(w *saleRequest) (leads bool) {
	select {
	case <-w.lead:
		return true
	case <-w.done:
	case <-time.After(w.Wait):
		s.quit(w, locks.NotAcquired(w.ctx, api.Key(w.Product), w.Wait))
	case <-w.ctx.Done():
		s.quit(w, stock.NothingWritten(w.ctx, w.ctx.Err()))
	}
	return false
}

// quit ends w with the error why and removes w from the queue, unless w is in a batch already.
func (s *combining) quit(w *saleRequest, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queues[w.Product], w)
	if i < 0 {
		return
	}
	s.queues[w.Product] = slices.Delete(s.queues[w.Product], i, i+1)
	w.err = why
	close(w.done)
	select {
	case <-w.lead: // w was chosen as leader meanwhile
		s.pass(w.Product)
	default:
	}
}

func (s *combining) pass(product int64) {
	if queue := s.queues[product]; len(queue) > 0 {
		close(queue[0].lead)
	} else {
		delete(s.queues, product)
	}
}

// errNoOutcome is the outcome of a request whose leader panicked: its pieces may have been taken.
var errNoOutcome = errors.New("the batch did not end")

// serve sells for the waiting requests as one batch. It chooses the next leader then, even after a panic, or earlier if
// patience is over.
func (s *combining) serve(product int64) {
	runtime.Gosched() // lets other requests join, which saves a fifth of the statements under load
	s.mu.Lock()
	queue := s.queues[product]
	n := min(len(queue), largestBatch)
	batch := queue[:n:n]
	s.queues[product] = queue[n:]
	s.batches[product]++
	early := s.batches[product] < mostBatches
	s.mu.Unlock()
	for _, w := range batch {
		w.err = errNoOutcome
	}
	passOn := sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pass(product)
	})
	if early {
		defer time.AfterFunc(s.patience, passOn).Stop()
	}
	defer func() {
		passOn()
		s.mu.Lock()
		if s.batches[product]--; s.batches[product] == 0 {
			delete(s.batches, product)
		}
		s.mu.Unlock()
		for _, w := range batch {
			close(w.done)
		}
	}()
	var sent []*saleRequest
	for _, w := range batch {
		locks.Trace(w.ctx, api.Writing, api.Key(product), w.Owner, 0)
		w.receipt.Waited = time.Since(w.queued)
		if w.ctx.Err() != nil {
			w.err = stock.NothingWritten(w.ctx, w.ctx.Err())
		} else {
			sent = append(sent, w)
		}
	}
	if len(sent) > 0 {
		s.sell(product, sent)
	}
}

// sell sets the outcome of each request of the batch. DANGER: if the statement gets no answer, the
// outcome of the whole batch is unknown.
func (s *combining) sell(product int64, batch []*saleRequest) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(batch[0].ctx), batchTimeout)
	defer cancel()
	sum := 0
	for _, w := range batch {
		sum += w.Qty
	}
	left, err := s.deduct(ctx, product, sum)
	if errors.Is(err, stock.ErrSoldOut) {
		s.singly(ctx, product, batch)
	} else {
		left += sum
		for _, w := range batch { // as if they had been sold one after the other
			left -= w.Qty
			w.receipt.Remaining, w.err = left, err
		}
	}
	for _, w := range batch {
		w.receipt.Held = time.Since(began)
	}
}

// singly sells for one request after the other. After a sale that failed, it reads the count again: other
// replicas may have sold, or the outcome may be unknown. So "sold out" always comes from the row.
func (s *combining) singly(ctx context.Context, product int64, batch []*saleRequest) {
	count, known := 0, false
	for _, w := range batch {
		if !known {
			var item stock.Item
			if item, w.err = s.ledger.ReadPrimary(ctx, product); w.err != nil {
				continue
			}
			count, known = item.Count, true
		}
		if w.err = stock.ErrSoldOut; w.Qty <= count {
			var left int
			if left, w.err = s.deduct(ctx, product, w.Qty); w.err == nil {
				count = left
			}
			known = w.err == nil
		}
		w.receipt.Remaining = count
	}
}

// deduct takes qty pieces. LAST_INSERT_ID(x) makes the server send x, the remaining count.
func (s *combining) deduct(ctx context.Context, product int64, qty int) (left int, err error) {
	for pauses := newBackoff(batchTimeout / 2); ; { // half, as the last statement may take 2 s
		if ctx.Err() != nil {
			return 0, stock.NothingWritten(ctx, ctx.Err())
		}
		id, found, err := lastInsertID(s.db.Statement.ConnPool.ExecContext(ctx,
			"UPDATE db_stock SET count = LAST_INSERT_ID(count - ?) WHERE id = ? AND count >= ?", qty, product, qty))
		switch {
		case stock.IsContention(err) && pauses.pause(ctx): // another client has locked the row
			continue
		case err == nil && !found:
			return 0, stock.ErrSoldOut // or the product is unknown
		}
		return int(id), stock.Indeterminate(err)
	}
}

func (*combining) Card() api.Card {
	return api.Card{
		ID: "combining", Family: "mysql", Source: "Hendler et al., SPAA 2010", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: api.Writing,
		Title: api.Text{EN: "One UPDATE for all waiting requests", ZH: "合并扣减：排队的请求合成一条 UPDATE"},
		Summary: api.Text{
			EN: "Each replica adds up the quantities of its waiting requests, and takes the sum with one UPDATE. If the answer to that UPDATE is lost, the outcome of all these requests is unknown.",
			ZH: "每个副本把排队请求的数量加起来，用一条 UPDATE 一次扣减；这条语句的回复丢了，整批请求的结果都未知。",
		},
		When: api.Text{
			EN: "Choose it if each replica has many requests for one row, and `atomic` is too slow. A lost answer leaves the outcome of a whole batch unknown.",
			ZH: "每个副本都有许多请求改同一行、`atomic` 不够快时选它。应答一丢，整批请求的结果都未知。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
	}
}
