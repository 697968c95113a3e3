package handlers

import (
	"oversell/api"
	"oversell/locks"
)

// latchAnswer is the answer about a latch. Set means that this request set the latch's count.
type latchAnswer struct {
	primitiveAnswer
	Set  bool `json:"set"`
	Left *int `json:"left,omitempty"`
}

func gateRoutes() []primitiveRoute {
	latch := func(p locks.Primitives) bool { return p.Latch != nil }
	barrier := func(p locks.Primitives) bool { return p.Barrier != nil }
	doubleBarrier := func(p locks.Primitives) bool { return p.DoubleBarrier != nil }
	return []primitiveRoute{
		{"latch", latch, (*primitiveCall).awaitLatch, []string{"count", "wait"}},
		{"countdown", latch, (*primitiveCall).countDown, []string{"count"}},
		{"barrier/set", barrier, (*primitiveCall).setBarrier, nil},
		{"barrier/wait", barrier, (*primitiveCall).awaitBarrier, []string{"wait"}},
		{"barrier/remove", barrier, (*primitiveCall).removeBarrier, nil},
		{"double-barrier/enter", doubleBarrier, (*primitiveCall).enter, []string{"members", "owner", "wait"}},
		{"double-barrier/leave", doubleBarrier, (*primitiveCall).leave, []string{"owner", "wait"}},
	}
}

// awaitLatch sets the latch if there is none, and waits until it opens (3.9.7).
func (c *primitiveCall) awaitLatch() operation {
	count := int(c.number("count", 6, 1, maxCount))
	c.readWait()
	return func() (any, error) {
		set, err := c.Latch.TrySet(c.context(), c.request.Key, count)
		if err != nil {
			return nil, err
		}
		if err := c.Latch.Await(c.context(), c.request); err != nil {
			return nil, err
		}
		return latchAnswer{primitiveAnswer: c.done(api.Opened), Set: set}, nil
	}
}

// countDown sets the latch if there is none. As in the tutorial, an open latch counts as none. With
// count=6, the seventh countdown sets a new latch and leaves 5, with "set":true. The first latch's
// waiters still continue. A countdown at the time of the sixth may find an open latch and leave 0.
func (c *primitiveCall) countDown() operation {
	count := int(c.number("count", 6, 1, maxCount))
	return func() (any, error) {
		set, err := c.Latch.TrySet(c.context(), c.request.Key, count)
		if err != nil {
			return nil, err
		}
		left, err := c.Latch.CountDown(c.context(), c.request.Key)
		if err != nil {
			return nil, err
		}
		return latchAnswer{c.done(either(left == 0, api.Opened, api.Counted)), set, &left}, nil
	}
}

// setBarrier closes the barrier, so that requests wait at it (4.6.6).
func (c *primitiveCall) setBarrier() operation {
	return func() (any, error) {
		set, err := c.Barrier.Set(c.context(), c.request.Key)
		return c.end(err, either(set, api.Set, api.WasSet))
	}
}

func (c *primitiveCall) awaitBarrier() operation {
	c.readWait()
	return func() (any, error) { return c.end(c.Barrier.Await(c.context(), c.request), api.Passed) }
}

func (c *primitiveCall) removeBarrier() operation {
	return func() (any, error) {
		removed, err := c.Barrier.Remove(c.context(), c.request.Key)
		return c.end(err, either(removed, api.Removed, api.WasNotSet))
	}
}

// enter waits until all members enter (4.6.6). A member must leave as the same owner.
func (c *primitiveCall) enter() operation {
	members := int(c.number("members", 3, 1, 1000))
	c.readMember()
	return func() (any, error) { return c.end(c.DoubleBarrier.Enter(c.context(), c.request, members), api.Entered) }
}

// leave waits until all members that entered have asked to leave.
func (c *primitiveCall) leave() operation {
	c.readMember()
	return func() (any, error) { return c.end(c.DoubleBarrier.Leave(c.context(), c.request), api.Left) }
}

func (c *primitiveCall) readMember() {
	c.request.Owner = c.word("owner", "")
	c.readWait()
}

func (c *primitiveCall) end(err error, outcome api.Outcome) (any, error) {
	if err != nil {
		return nil, err
	}
	return c.done(outcome), nil
}

func either(condition bool, yes, no api.Outcome) api.Outcome {
	if condition {
		return yes
	}
	return no
}
