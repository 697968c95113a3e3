package load

import (
	"context"
	"iter"
	"time"
)

// closed lets the client ask again as soon as it has its answer, or once in Every.
func (c *client) closed(ctx context.Context) iter.Seq[time.Duration] {
	return func(yield func(due time.Duration) bool) {
		c.active.Add(1)
		defer c.active.Add(-1)
		for range c.plan.Loops {
			began := time.Since(c.start)
			if c.plan.over(began) || !yield(0) {
				return
			}
			if !sleep(ctx, began+c.plan.Every-time.Since(c.start)) {
				return
			}
		}
	}
}

// open lets the client ask when it is free and something is due.
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

// pace hands out the due times of an open loop, each when it has come. While no client
// is free it is held up, and so are those that become due meanwhile; but they remain due
// when they were. It ends with ctx, or with the last one.
func (p Plan) pace(ctx context.Context, start time.Time, dues chan<- time.Duration) {
	defer close(dues)
	for sent := range p.Clients * p.Loops {
		due := p.Rate.due(sent)
		if p.over(due) || !sleep(ctx, p.Rate.wait(time.Since(start), sent)) {
			return
		}
		select {
		case dues <- due:
		case <-ctx.Done():
			return
		}
	}
}

// over says whether nothing is to be sent any more.
func (p Plan) over(at time.Duration) bool { return p.Length > 0 && at >= p.Length }
