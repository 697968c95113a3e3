package load

import (
	"context"
	"iter"
	"time"
)

// closed yields 0, the due time of a closed loop, after each answer, at most once per Plan.Every.
func (c *client) closed(ctx context.Context) iter.Seq[time.Duration] {
	return func(yield func(due time.Duration) bool) {
		c.active.Add(1)
		defer c.active.Add(-1)
		for sent := 0; c.plan.sendsMore(sent); sent++ {
			if c.plan.over(time.Since(c.start)) || !yield(0) || Sleep(ctx, c.called+c.plan.Every-time.Since(c.start)) != nil {
				return
			}
		}
	}
}

func (c *client) open(dues <-chan time.Duration) iter.Seq[time.Duration] {
	return func(yield func(due time.Duration) bool) {
		for due := range dues {
			c.active.Add(1)
			more := yield(due)
			c.active.Add(-1)
			if !more {
				return
			}
		}
	}
}

// pace sends each due time to a client at that time. While all clients are busy, pace waits.
func (p Plan) pace(ctx context.Context, start time.Time, dues chan<- time.Duration) {
	defer close(dues)
	for sent := range p.Clients * p.Loops {
		due := p.Rate.due(sent)
		if p.over(due) || Sleep(ctx, due-time.Since(start)) != nil {
			return
		}
		select {
		case dues <- due:
		case <-ctx.Done():
			return
		}
	}
}

func (p Plan) over(at time.Duration) bool { return p.Length > 0 && at >= p.Length }

// sendsMore reports whether a client of a closed loop that has sent that many requests sends another.
func (p Plan) sendsMore(sent int) bool {
	if sent < p.Loops || p.Until == nil {
		return sent < p.Loops
	}
	select {
	case <-p.Until:
		return false
	default:
		return sent < MaxRequests/p.Clients
	}
}
