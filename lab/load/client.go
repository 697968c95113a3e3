package load

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync/atomic"
	"time"
	"unique"

	"oversell/lab/history"
)

// client sends its requests one after the other over one connection.
type client struct {
	id      int
	plan    Plan
	request request
	start   time.Time
	conn    *conn
	active  *atomic.Int64
	called  time.Duration // when the last request was sent, since start
}

// run sends and records one request for each due time in dues. It returns early when ctx ends.
func (c *client) run(ctx context.Context, dues iter.Seq[time.Duration], done func(*history.Op)) []history.Op {
	ops := make([]history.Op, 0, min(c.plan.Loops, 4096))
	defer c.disconnect()
	for due := range dues {
		if ctx.Err() != nil {
			break
		}
		op, sent := c.send(ctx, due)
		if !sent {
			break
		}
		ops = append(ops, op)
		done(&op)
	}
	return ops
}

// send sends one request, at most once. It returns false if ctx ended before the request was sent.
func (c *client) send(ctx context.Context, due time.Duration) (op history.Op, sent bool) {
	op = history.Op{Client: c.id, Strategy: c.plan.Strategy, Qty: c.plan.Qty, Due: due, Call: time.Since(c.start)}
	c.called = op.Call
	defer func() { op.Return, op.Active = time.Since(c.start), int(c.active.Load()) }()
	deadline := time.Now().Add(c.plan.timeout())
	if c.conn == nil {
		conn, err := dial(ctx, c.request, deadline)
		op.Connect = time.Since(c.start) - op.Call
		if err != nil {
			// Nothing was sent, so nothing was sold.
			op.Outcome, op.Reason, op.Detail = history.Refused, history.Unreachable, err.Error()
			return op, ctx.Err() == nil
		}
		c.conn = conn
	}
	_ = c.conn.socket.SetDeadline(deadline)
	// SetDeadline may have replaced the earlier deadline that was set when ctx ended.
	if ctx.Err() != nil {
		return op, false
	}
	c.exchange(ctx, &op)
	return op, true
}

// exchange sends a request and records its answer. After a failure, it closes the connection.
func (c *client) exchange(ctx context.Context, op *history.Op) {
	in, out := c.conn.socket.in, c.conn.socket.out
	_, err := c.conn.stream.Write(c.request.bytes)
	var got answer
	if err == nil {
		if _, err = c.conn.reader.Peek(1); err == nil {
			op.FirstByte = time.Since(c.start) - op.Call
			got, err = c.conn.receive()
		}
	}
	op.BytesIn, op.BytesOut = c.conn.socket.in-in, c.conn.socket.out-out
	if err != nil {
		c.disconnect()
		op.Outcome, op.Reason = history.Unknown, reason(ctx, err)
		if op.Reason != history.Interrupted {
			op.Detail = intern(err.Error())
		}
		return
	}
	recordAnswer(op, got.status, got.body)
	for _, s := range []*string{&op.Reason, &op.Replica, &op.Backend, &op.Detail} {
		*s = intern(*s)
	}
	if got.close {
		c.disconnect()
	}
}

func (c *client) disconnect() {
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
}

// intern returns one copy of a string that many answers have, to save memory.
func intern(s string) string { return unique.Make(s).Value() }

func reason(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return history.Interrupted
	case errors.Is(err, os.ErrDeadlineExceeded):
		return history.TimedOut
	default:
		return history.Broken
	}
}
