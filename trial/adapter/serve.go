package adapter

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

// Serve offers a Locker behind the protocol. It returns at the end of in. Then it has released all
// locks that were held, as far as their backends answer.
func Serve(ctx context.Context, in io.Reader, out io.Writer, hello Hello, l locks.Locker) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{locker: l, out: json.NewEncoder(out), uses: map[int64]*served{}}
	if err := s.out.Encode(hello); err != nil {
		cancel()
		return fmt.Errorf("adapter: send the hello: %w", err)
	}
	err := s.read(ctx, in)
	cancel()
	s.requests.Wait()
	return errors.Join(err, s.releaseAll(context.WithoutCancel(ctx)))
}

type server struct {
	locker   locks.Locker
	requests sync.WaitGroup

	writing sync.Mutex
	out     *json.Encoder

	mu   sync.Mutex
	uses map[int64]*served // by the ID of the request
}

// served is a request that runs, or an acquire that holds the lock.
type served struct {
	Request
	cancel  context.CancelFunc
	proceed chan struct{} // continue was received
	lock    *locks.Lock   // nil until the grant
}

func (s *server) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var r Request
		if err := decode(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("adapter: line %d: %w", n, err)
		}
		if err := s.begin(ctx, r); err != nil {
			return fmt.Errorf("adapter: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("adapter: read requests: %w", err)
	}
	return nil
}

func (s *server) begin(ctx context.Context, r Request) error {
	switch r.Do {
	case doCancel, doContinue:
		if u := s.find(r.Of); u == nil { // it crossed the answer
			return nil
		} else if r.Do == doCancel {
			u.cancel()
		} else {
			select {
			case u.proceed <- struct{}{}:
			default: // a second continue
			}
		}
		return nil
	case doAcquire, doRelease, doVerify, doAdvance, doClear:
	default:
		return fmt.Errorf("unknown request %q", r.Do)
	}
	if r.ID <= 0 {
		return fmt.Errorf("the request %s has no id", r.Do)
	}
	// The end of the lock's context must come only from cancel or from the end of Serve.
	ctx, cancel := context.WithCancel(ctx)
	u := &served{Request: r, cancel: cancel, proceed: make(chan struct{}, 1)}
	s.mu.Lock()
	s.uses[r.ID] = u
	s.mu.Unlock()
	s.requests.Go(func() { s.carryOut(s.traced(ctx, u), u) })
	return nil
}

func (s *server) find(id int64) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses[id]
}

func (s *server) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.uses[id]; u != nil {
		delete(s.uses, id)
		if u.lock == nil { // otherwise its last release cancels the context
			u.cancel()
		}
	}
}

func (s *server) answer(a Answer) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.out.Encode(a) // without a reader, our input ends as well
}

// traced makes a request report its steps. At a step other than queued, it waits for continue.
func (s *server) traced(ctx context.Context, u *served) context.Context {
	return locks.WithTracer(ctx, func(_ context.Context, e api.Event) {
		if e.Step == api.Queued {
			s.answer(Answer{ID: u.ID, Answer: queued})
			return
		}
		s.answer(Answer{ID: u.ID, Answer: step, Step: e.Step})
		select {
		case <-u.proceed:
		case <-ctx.Done(): // of the request, not of the trace: a failpoint may pause longer than a release may take
		}
	})
}

func (s *server) carryOut(ctx context.Context, u *served) {
	if u.Do == doAcquire {
		s.acquire(ctx, u)
		return
	}
	a := s.use(ctx, u)
	a.ID = u.ID
	s.forget(u.ID)
	s.answer(a)
}

func (s *server) acquire(ctx context.Context, u *served) {
	h, err := s.locker.Acquire(ctx, locks.Request{
		Key: u.Key, Owner: u.Owner, Wait: duration(u.WaitMS), Lease: duration(u.LeaseMS), NoRenew: u.NoRenew, Fenced: u.Fenced,
	})
	if err != nil {
		s.forget(u.ID)
		a := failure(err)
		a.ID = u.ID
		s.answer(a)
		return
	}
	h.OnRelease(u.cancel)
	s.mu.Lock()
	u.lock = h
	s.mu.Unlock()
	s.answer(Answer{ID: u.ID, Answer: granted, Fence: h.Fence()})
	// After the answer: no line about a lock may come before its grant.
	context.AfterFunc(h.Context(), func() {
		if cause := context.Cause(h.Context()); errors.Is(cause, locks.ErrLost) {
			s.answer(Answer{ID: u.ID, Answer: lost, Why: cause.Error()})
		}
	})
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// failure returns the answer to a request that has failed with err.
func failure(err error) Answer {
	switch {
	case errors.Is(err, locks.ErrNotAcquired):
		return Answer{Answer: notAcquired}
	case errors.Is(err, locks.ErrNotHeld), errors.Is(err, locks.ErrLost):
		return Answer{Answer: notHeld}
	}
	a := Answer{Answer: failed, Why: err.Error()}
	if away := (*stock.Unavailable)(nil); errors.As(err, &away) {
		a.Backend, a.Why = away.Backend, away.Err.Error()
	}
	return a
}

// use carries out a request other than acquire.
func (s *server) use(ctx context.Context, u *served) Answer {
	if u.Do == doClear {
		return s.clear(ctx, u.Key)
	}
	s.mu.Lock()
	of := s.uses[u.Of]
	var h *locks.Lock
	if of != nil {
		h = of.lock
	}
	s.mu.Unlock()
	if h == nil {
		return Answer{Answer: notHeld}
	}
	switch u.Do {
	case doVerify:
		if err := h.Verify(); err != nil {
			return Answer{Answer: notHeld, Why: err.Error()}
		}
		return Answer{Answer: held}
	case doAdvance:
		if err := h.AdvanceFence(ctx, u.Floor); err != nil {
			return failure(err)
		}
		return Answer{Answer: advanced, Fence: h.Fence()}
	}
	err := h.Release(ctx)
	s.forget(u.Of)
	if err != nil {
		return failure(err)
	}
	return Answer{Answer: released}
}

func (s *server) clear(ctx context.Context, key string) Answer {
	if cleaner, ok := s.locker.(locks.Cleaner); ok {
		if err := cleaner.Clear(ctx, key); err != nil {
			return failure(err)
		}
	}
	return Answer{Answer: done}
}

// releaseAll releases the locks that are held when no request runs any more.
func (s *server) releaseAll(ctx context.Context) (failed error) {
	for _, u := range s.uses {
		if u.lock == nil {
			continue
		}
		if err := u.lock.Release(ctx); !errors.Is(err, locks.ErrNotHeld) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
