package load

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"oversell/lab/history"
)

// client is one customer: it asks, waits for the answer, and asks again when it is its
// turn. In an open loop it is a connection, and customers come and go.
type client struct {
	id      int
	plan    Plan
	request request
	start   time.Time
	wire    *wire
	words   map[string]string
	active  *atomic.Int64
}

// run records every request that it sent. It ends early when ctx does.
func (c *client) run(ctx context.Context, turns iter.Seq[time.Duration], done func(*history.Op)) []history.Op {
	ops := make([]history.Op, 0, min(c.plan.Loops, 4096))
	defer c.hangUp()
	for due := range turns {
		if ctx.Err() != nil {
			break
		}
		op, sent := c.ask(ctx, due)
		if !sent {
			break
		}
		ops = append(ops, op)
		done(&op)
	}
	return ops
}

// ask sends one request, once, whatever happens to it. It reports false when the run was
// stopped before anything was sent.
func (c *client) ask(ctx context.Context, due time.Duration) (history.Op, bool) {
	op := history.Op{Client: c.id, Strategy: c.plan.Strategy, Qty: c.plan.Qty, Due: due, Call: time.Since(c.start)}
	deadline := time.Now().Add(c.plan.timeout())
	if c.wire == nil {
		w, err := dial(ctx, c.request, deadline)
		op.Connect = time.Since(c.start) - op.Call
		if err != nil {
			// Nothing was sent, so nothing can have been sold.
			op.Outcome, op.Reason, op.Detail = history.Refused, history.Unreachable, err.Error()
			c.end(&op)
			return op, ctx.Err() == nil
		}
		c.wire = w
	}
	_ = c.wire.raw.SetDeadline(deadline)
	// Only now: a stop that came before the line above had its wake-up overwritten.
	if ctx.Err() != nil {
		return op, false
	}
	c.exchange(ctx, &op)
	c.end(&op)
	return op, true
}

func (c *client) end(op *history.Op) {
	op.Return = time.Since(c.start)
	op.Active = int(c.active.Load())
}

// exchange writes the request and reads the answer. Once the first byte is out, a
// failure leaves the outcome unknown, and the connection is not used again.
func (c *client) exchange(ctx context.Context, op *history.Op) {
	in, out := c.wire.raw.in, c.wire.raw.out
	_, err := c.wire.conn.Write(c.request.bytes)
	var got answer
	if err == nil {
		if _, err = c.wire.read.Peek(1); err == nil {
			op.FirstByte = time.Since(c.start) - op.Call
			got, err = c.wire.receive()
		}
	}
	op.BytesIn, op.BytesOut = c.wire.raw.in-in, c.wire.raw.out-out
	if err != nil {
		c.hangUp()
		op.Outcome, op.Reason = history.Unknown, broken(ctx, err)
		if op.Reason != history.Interrupted {
			op.Detail = c.word(err.Error())
		}
		return
	}
	judge(op, got.status, got.body)
	op.Reason, op.Replica, op.Backend, op.Detail = c.word(op.Reason), c.word(op.Replica), c.word(op.Backend), c.word(op.Detail)
	if got.close {
		c.hangUp()
	}
}

func (c *client) hangUp() {
	if c.wire != nil {
		c.wire.close()
		c.wire = nil
	}
}

// word keeps one copy of the few words that come back in every answer.
func (c *client) word(s string) string {
	if kept, ok := c.words[s]; ok {
		return kept
	}
	const enough = 64 // details may all differ
	if len(c.words) < enough {
		c.words[s] = s
	}
	return s
}

// broken names why an answer never came.
func broken(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return history.Interrupted
	case errors.Is(err, os.ErrDeadlineExceeded):
		return history.TimedOut
	default:
		return history.Broken
	}
}
