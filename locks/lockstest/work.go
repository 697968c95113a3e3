package lockstest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Open returns the strategy of that id. A worker calls it for every command, so
// it must give the same one each time.
type Open func(id string) (locks.Strategy, error)

// Work makes a worker of this process: it reads commands from in and answers on
// out until in ends, which it does when the process that gives them dies, however
// that happens. The caller should exit then, for what was begun still runs.
func Work(in io.Reader, out io.Writer, open Open) error {
	w := &worker{open: open, out: json.NewEncoder(out), running: map[int]*running{}, holds: map[int]*holding{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("lockstest: order %q: %w", lines.Text(), err)
		}
		ctx := w.begin(c)
		go func() {
			began := time.Now()
			r := w.do(ctx, c)
			r.ID, r.Took = c.ID, time.Since(began)
			w.end(c.ID, r)
		}()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("lockstest: orders: %w", err)
	}
	return nil
}

// worker is the inside of a worker process.
type worker struct {
	open Open

	answering sync.Mutex
	out       *json.Encoder

	mu      sync.Mutex
	running map[int]*running
	holds   map[int]*holding
}

// running is a command that has not answered yet, or whose hold still lives.
type running struct {
	cancel context.CancelCauseFunc
	resume chan struct{}
}

// holding is a hold and the context under which it was acquired.
type holding struct{ hold *locks.Lock }

func (w *worker) begin(c command) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	if c.Cancelled {
		cancel(errCancelled)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[c.ID] = &running{cancel: cancel, resume: make(chan struct{}, 1)}
	return ctx
}

// end answers. What was acquired keeps its context: it is the hold's.
func (w *worker) end(id int, r reply) {
	w.mu.Lock()
	if w.holds[id] == nil {
		w.running[id].cancel(nil)
		delete(w.running, id)
	}
	w.mu.Unlock()
	w.answer(r)
}

func (w *worker) answer(r reply) {
	w.answering.Lock()
	defer w.answering.Unlock()
	// Nobody to tell: the parent is gone, and so is our input in a moment.
	_ = w.out.Encode(r)
}

func (w *worker) do(ctx context.Context, c command) reply {
	switch c.Do {
	case doPing:
		return reply{}
	case doCancel, doGo:
		return w.meddle(c)
	case doRelease, doCheck, doLost:
		return w.ofHold(ctx, c)
	}
	s, err := w.open(c.Strategy)
	if err != nil {
		return reply{Fault: faultOf(err)}
	}
	switch c.Do {
	case doDeduct:
		return w.deduct(ctx, c, s)
	case doStorm:
		return storm(ctx, c, s)
	case doClear:
		return wipe(ctx, c, s)
	case doCount:
		return remaining(ctx, c, s)
	}
	l, ok := s.(locks.Locker)
	if !ok {
		return reply{Fault: faultOf(fmt.Errorf("%s is not a locker", c.Strategy))}
	}
	switch c.Do {
	case doAcquire:
		return w.acquire(ctx, c, l)
	case doContend:
		return contend(ctx, c, l)
	case doChurn:
		return churn(ctx, c, l)
	}
	return reply{Fault: faultOf(fmt.Errorf("no such order: %s", c.Do))}
}

// meddle is a command about another one.
func (w *worker) meddle(c command) reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	other := w.running[c.Of]
	switch {
	case other == nil:
		return reply{Fault: faultOf(fmt.Errorf("%s %d: it has ended", c.Do, c.Of))}
	case c.Do == doCancel:
		other.cancel(errCancelled)
	default:
		other.resume <- struct{}{}
	}
	return reply{}
}

func (w *worker) acquire(ctx context.Context, c command, l locks.Locker) reply {
	if c.Step != "" { // told, not paused: the lock must not be kept waiting
		ctx = locks.WithTracer(ctx, func(_ context.Context, e api.Event) {
			if e.Step == c.Step {
				w.answer(reply{ID: c.ID, Paused: true})
			}
		})
	}
	h, err := l.Acquire(ctx, c.Request)
	if err != nil {
		return reply{Fault: faultOf(err)}
	}
	w.mu.Lock()
	w.holds[c.ID] = &holding{h}
	w.mu.Unlock()
	return reply{Fence: h.Fence()}
}

// ofHold is a command about a hold. A hold stays known after its release, so
// that it can be released again.
func (w *worker) ofHold(ctx context.Context, c command) reply {
	w.mu.Lock()
	held := w.holds[c.Of]
	w.mu.Unlock()
	if held == nil {
		return reply{Fault: faultOf(fmt.Errorf("%s: command %d holds nothing", c.Do, c.Of))}
	}
	h := held.hold
	switch c.Do {
	case doRelease:
		return reply{Fault: faultOf(h.Release(ctx))}
	case doCheck:
		return reply{Fault: faultOf(h.Verify()), Fence: h.Fence(), Ended: h.Context().Err() != nil}
	}
	select {
	case <-h.Context().Done():
		return reply{Ended: true, Fault: faultOf(context.Cause(h.Context()))}
	case <-time.After(c.Wait):
		return reply{}
	}
}

func remaining(ctx context.Context, c command, s locks.Strategy) reply {
	keeper, ok := s.(locks.StockHolder)
	if !ok {
		return reply{}
	}
	n, err := keeper.Count(ctx, c.Order.Product)
	return reply{Kept: true, Receipt: stock.Receipt{Remaining: n}, Fault: faultOf(err)}
}

func wipe(ctx context.Context, c command, s locks.Strategy) reply {
	cleaner, ok := s.(locks.Cleaner)
	if !ok {
		return reply{Fault: faultOf(errors.New("its state can't be cleared"))}
	}
	return reply{Fault: faultOf(cleaner.Clear(ctx, c.Request.Key))}
}
