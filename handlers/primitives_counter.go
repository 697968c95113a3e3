package handlers

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/locks"
)

type countAnswer struct {
	primitiveAnswer
	locks.Count
}

type changeAnswer struct {
	primitiveAnswer
	locks.Changed
	// Version may include later changes of other requests. nil means that it could not be read.
	Version *int64 `json:"version,omitempty"`
}

var (
	counterOps      = []string{"get", "increment", "decrement", "add", "subtract", "try-set", "force-set", "compare-and-set", "compare-version"} //nolint:gochecknoglobals // constant
	waitingOps      = counterOps[1:5]                                                                                                            //nolint:gochecknoglobals // constant
	opsWithAValue   = counterOps[3:]                                                                                                             //nolint:gochecknoglobals // constant
	opsWithAnExpect = counterOps[7:8]                                                                                                            //nolint:gochecknoglobals // constant
	opsWithAVersion = counterOps[8:]                                                                                                             //nolint:gochecknoglobals // constant
)

func counterRoutes() []primitiveRoute {
	counter := func(p locks.Primitives) bool { return p.Counter != nil }
	return []primitiveRoute{
		{"counter", counter, (*primitiveCall).counter, []string{"op", "value", "expect", "version", "wait"}},
		{"counter/events", counter, (*primitiveCall).streamCounter, nil},
	}
}

// counter (4.6.7) sends 200 even if the change failed: as with Curator, clients check "succeeded".
func (c *primitiveCall) counter() operation {
	change := c.readChange()
	return func() (any, error) {
		if change == nil {
			count, err := c.Counter.Get(c.context(), c.request.Key)
			if err != nil {
				return nil, err
			}
			return countAnswer{c.done(api.WasRead), count}, nil
		}
		changed, err := change(c.context(), c.Counter)
		if err != nil {
			return nil, err
		}
		c.granted = time.Now()
		answer := changeAnswer{primitiveAnswer: c.done(either(changed.Succeeded, api.Changed, api.Unchanged)), Changed: changed}
		// The counter has already changed, so a failed read of its version is no error.
		if count, err := c.Counter.Get(c.context(), c.request.Key); err == nil {
			answer.Version = &count.Version
		}
		return answer, nil
	}
}

type counterChange func(context.Context, locks.Counter) (locks.Changed, error)

// readChange reads the parameter op and the parameters of its operation. It returns nil for get.
func (c *primitiveCall) readChange() counterChange {
	op := c.text("op", "get")
	if !slices.Contains(counterOps, op) {
		c.fail("op", op, oneOf(counterOps))
	}
	value := c.operand("value", op, opsWithAValue)
	expect := c.operand("expect", op, opsWithAnExpect)
	version := c.operand("version", op, opsWithAVersion)
	c.reject("wait", op, waitingOps)
	c.readWait()
	r, deltas := c.request, map[string]int64{"increment": 1, "decrement": -1, "add": value, "subtract": -value}
	if op == "get" {
		return nil
	}
	return func(ctx context.Context, c locks.Counter) (locks.Changed, error) {
		switch op {
		case "try-set":
			return c.TrySet(ctx, r.Key, value)
		case "force-set":
			return c.ForceSet(ctx, r.Key, value)
		case "compare-and-set":
			return c.CompareAndSet(ctx, r.Key, expect, value)
		case "compare-version":
			return c.CompareVersion(ctx, r.Key, version, value)
		default:
			return c.Add(ctx, r, deltas[op])
		}
	}
}

func (c *primitiveCall) reject(name, op string, users []string) (used bool) {
	used = slices.Contains(users, op)
	if !used && c.values.Has(name) {
		c.fail(name, c.text(name, ""), api.Textf("left out: op=%s does not use it; it is used by %s",
			"不写：op=%s 用不到它；用到它的是 %s", op, strings.Join(users, ", ")))
	}
	return used
}

// operand reads a number that some operations require and all other operations reject.
func (c *primitiveCall) operand(name, op string, users []string) int64 {
	if !c.reject(name, op, users) {
		return 0
	}
	low := int64(math.MinInt64)
	if op == "subtract" {
		low++ // the lowest int64 has no positive counterpart
	}
	return c.needed(name, low, math.MaxInt64)
}

// streamCounter sends each value. A slow client may miss values, but always receives the newest.
func (c *primitiveCall) streamCounter() operation {
	return func() (any, error) {
		leave, err := c.service.openStream(c.gin)
		if err != nil {
			return nil, err
		}
		defer leave()
		ctx, end := context.WithCancel(c.context())
		defer end()
		counts, err := c.Counter.Watch(ctx, c.request.Key)
		if err != nil {
			return nil, err
		}
		c.observe("watched")
		stream(ctx, c.service, c.gin, counts, func(count locks.Count) { c.gin.SSEvent("", count) })
		return written{}, nil
	}
}
